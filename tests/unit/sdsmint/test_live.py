"""The names that have a leaf: bounded, and taken back in order."""

from atenet.sdsmint.live import Live


class Names:
    """A stream that notes what it is told."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def take_back(self, names: list[str]) -> None:
        self.gone += names


def test_for_one_too_many_the_oldest_is_taken_back() -> None:
    live, one, two = Live(2), Names(), Names()
    live.add(one, "a")
    live.add(two, "b")
    live.add(one, "a")
    live.add(two, "c")
    assert (one.gone, two.gone, len(live)) == ([], ["b"], 2)


def test_what_envoy_gives_up_counts_no_more() -> None:
    live, one, two = Live(2), Names(), Names()
    live.add(one, "a")
    live.add(two, "b")
    live.remove(one, ["a", "unknown"])
    live.forget(two)
    assert len(live) == 0


def test_all_are_taken_back_at_once_and_by_stream() -> None:
    live, one, two = Live(9), Names(), Names()
    live.add(one, "a")
    live.add(one, "b")
    live.add(two, "a")
    assert live.take_all_back() == 3
    assert (one.gone, two.gone, len(live)) == (["a", "b"], ["a"], 0)
