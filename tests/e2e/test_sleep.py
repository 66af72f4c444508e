"""Actors that are paused, that go back, and that sleep or make room without being asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.actor_box import processes_of
from tests.support.eventually import eventually
from tests.support.local_system import COUNTER, Ate, ate_home

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def narrow(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ate]:
    """A system with one slot: whoever runs is alone."""
    with ate_home() as ate:
        up = ate.up("--workers", "1", "--slots", "1")
        assert up.code == 0, up
        ate.furnish("one")
        _template(ate, tmp_path_factory.mktemp("templates"), "sleepy", "idleTimeout: 1s")
        _template(ate, tmp_path_factory.mktemp("templates"), "polite", "reclaimAfter: 1s")
        yield ate
        ate.good("down")
        assert ate.left_behind() == []


def _template(ate: Ate, where: Path, name: str, more: str) -> None:
    """The counter's, under another name and with a line more."""
    text = (COUNTER / "template.yaml").read_text().replace("name: counter", f"name: {name}", 1)
    file = where / "template.yaml"
    file.write_text(text.replace("path: .", f"path: {COUNTER}") + f"\n{more}\n")
    ate.good("template", "create", "-f", file)


def _uid(ate: Ate, actor: str = "demo/one") -> str:
    return str(ate.good("actor", "get", actor, "-o", "json").json["metadata"]["uid"])


@pytest.mark.conformance("T-05")
async def test_a_request_wakes_a_paused_actor_where_it_is(narrow: Ate) -> None:
    count = narrow.count(add=True)
    before = processes_of(_uid(narrow))
    said = narrow.good("actor", "pause", "demo/one").out
    assert "demo/one is paused" in said
    assert narrow.state() == "PAUSED"
    assert processes_of(_uid(narrow)) == before
    assert narrow.count() == count
    assert narrow.state() == "RUNNING"
    assert processes_of(_uid(narrow)) == before, "the very same processes"
    narrow.good("actor", "pause", "demo/one")
    narrow.good("actor", "suspend", "demo/one")
    assert narrow.count() == count


async def test_a_reverted_actor_has_forgotten_what_it_did_since(narrow: Ate) -> None:
    count = narrow.count(add=True)
    narrow.good("actor", "suspend", "demo/one")
    assert narrow.count(add=True) == count + 1
    assert "demo/one is suspended" in narrow.good("actor", "revert", "demo/one").out
    assert narrow.count() == count
    narrow.good("actor", "suspend", "demo/one")


async def test_an_actor_that_nobody_uses_sleeps_by_itself_and_wakes_again(narrow: Ate) -> None:
    narrow.good("actor", "create", "demo/sleepy", "-t", "sleepy")
    for _ in range(2):
        count = narrow.count("demo/sleepy", add=True)
        await eventually(lambda: narrow.state("demo/sleepy") == "SUSPENDED")
        assert narrow.count("demo/sleepy") == count
    await eventually(lambda: narrow.state("demo/sleepy") == "SUSPENDED")


async def test_an_idle_actor_makes_room_for_another_ones_request(narrow: Ate) -> None:
    for name in ("demo/this", "demo/that"):
        narrow.good("actor", "create", name, "-t", "polite")
    for name, other in (("demo/this", "demo/that"), ("demo/that", "demo/this")):
        assert narrow.count(name, add=True) == 1
        assert (narrow.state(name), narrow.state(other)) == ("RUNNING", "SUSPENDED")
