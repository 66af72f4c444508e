"""What failed is tried again soon, and never much later than an API server's restart takes."""

from __future__ import annotations

from atenet.controller.backoff import Backoff


def whole() -> float:
    return 1.0


def test_it_waits_twice_as_long_each_time_up_to_a_few_seconds() -> None:
    backoff = Backoff(0.5)
    assert [backoff.wait(whole) for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_nobody_waits_longer_than_five_seconds_however_long_it_was_away() -> None:
    backoff = Backoff(0.2)
    assert max(backoff.wait() for _ in range(1000)) <= 5.0


def test_once_it_went_well_it_begins_anew() -> None:
    backoff = Backoff(0.5, longest=60.0)
    for _ in range(5):
        backoff.wait()
    backoff.reset()
    assert backoff.wait(whole) == 0.5


def test_what_failed_together_is_not_tried_again_together() -> None:
    waits = [Backoff(4.0).wait() for _ in range(50)]
    assert len(set(waits)) > 10
    assert all(2.0 <= wait <= 4.0 for wait in waits)
