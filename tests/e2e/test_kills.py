"""kill -9 of each process in turn: no actor is lost, no claim stays, nothing is left behind."""

from collections.abc import Iterator

import pytest

from tests.support.eventually import eventually
from tests.support.local_system import Ate, ate_home

pytestmark = pytest.mark.timeout(240)
SLOTS = 4


@pytest.fixture(scope="module")
def system(root: None) -> Iterator[Ate]:
    """Two workers with two slots, and more actors than fit."""
    with ate_home() as ate:
        up = ate.up("--workers", "2", "--slots", "2")
        assert up.code == 0, up
        ate.furnish("one", *(f"fill-{n}" for n in range(SLOTS)))
        yield ate


async def _answers(ate: Ate, actor: str = "demo/one") -> int:
    """The count, as soon as the actor answers again."""

    def asks() -> bool:
        return ate("curl", "--fail", actor).code == 0

    await eventually(asks, 60)
    return ate.count(actor)


async def _all_ready(ate: Ate) -> None:
    await eventually(lambda: ate("status").code == 0, 60)


@pytest.mark.parametrize("process", ["router", "ateapi", "atelet", "the actor's worker"])
async def test_a_killed_process_comes_back_and_takes_no_actor_with_it(
    system: Ate, process: str
) -> None:
    count = system.count(add=True)
    name = system.worker() if process == "the actor's worker" else process
    pid = system.kill(name)
    assert await _answers(system) == count
    await _all_ready(system)
    again = system.processes()[name]
    assert again["pid"] != pid
    assert again["restarts"] >= 1
    system.good("actor", "suspend", "demo/one")
    assert system.count() == count


async def test_after_every_kill_all_slots_can_still_be_taken(system: Ate) -> None:
    for name in ("router", "ateapi", "atelet", "worker-1", "worker-2"):
        system.kill(name)
    await _all_ready(system)
    system("actor", "suspend", "demo/one")
    for n in range(SLOTS):
        name = f"demo/fill-{n}"
        await eventually(lambda name=name: system("actor", "resume", name).code == 0, 60)  # type: ignore[misc]
    taken = [w["used"] for w in system.good("status", "-o", "json").json["workers"]]
    assert sum(taken) == SLOTS
    for n in range(SLOTS):
        system.good("actor", "suspend", f"demo/fill-{n}")


async def test_a_killed_supervisor_takes_all_with_it_and_up_brings_all_back(system: Ate) -> None:
    count = system.count(add=True)
    system.kill("supervisor")
    gone = system("status")
    assert gone.code == 4
    assert "ate down" in gone.err
    up = system.up("--workers", "2", "--slots", "2")
    assert up.code == 0, up
    assert await _answers(system) == count
    assert system.good("down").out == "down\n"
    assert system.left_behind() == []


async def test_down_cleans_up_after_a_killed_supervisor(system: Ate) -> None:
    up = system.up("--workers", "2", "--slots", "2")
    assert up.code == 0, up
    count = await _answers(system)
    system.kill("supervisor")
    down = system.good("down")
    assert "cleaned up" in down.out
    assert system.left_behind() == []
    assert "nothing is running" in system.good("down").out
    assert system.up("--workers", "1").code == 0
    assert await _answers(system) == count
    assert system.good("down").out == "down\n"
    assert system.left_behind() == []
