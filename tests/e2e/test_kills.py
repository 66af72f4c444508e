"""kill -9 of each process in turn: no actor is lost, no claim stays, nothing is left behind."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from atenet.local.settings import DATAPLANES

from tests.support.eventually import eventually
from tests.support.local_system import Ate, Ran, ate_home

pytestmark = pytest.mark.timeout(240)
SLOTS = 4
FLAGS = ("--workers", "2", "--slots", "2")
OTHER = {"worker-1": "worker-2", "worker-2": "worker-1"}
EACH = (
    *("ateapi", "ateapi's front", "atelet", "the actor's worker", "the other worker"),
    *("router", "egress", "credentials"),
)
# What there is of them besides, on Envoy.
BESIDE = {"envoy": ("router's envoy", "egress's envoy", "sdsmint"), "agentgateway": ()}
CASES = [(plane, process) for plane in DATAPLANES for process in (*EACH, *BESIDE[plane])]


@pytest.fixture(scope="module", params=DATAPLANES)
def system(root: None, request: pytest.FixtureRequest) -> Iterator[Ate]:
    """Two workers with two slots, and more actors than fit."""
    with ate_home() as ate:
        ate.network += ["--dataplane", request.param]
        up = ate.up(*FLAGS)
        assert up.code == 0, up
        ate.furnish("one", *(f"fill-{n}" for n in range(SLOTS)))
        yield ate


async def _answers(ate: Ate, actor: str = "demo/one") -> int:
    """The count, as soon as the actor answers again."""

    last: list[Ran] = []

    def asks() -> bool:
        last[:] = [ate("curl", "--fail", actor)]
        return last[0].code == 0

    await eventually(asks, 60)
    return int(last[0].json["count"])


async def _all_ready(ate: Ate) -> None:
    await eventually(lambda: ate("status").code == 0, 60)


def _activation(ate: Ate) -> tuple[str, str]:
    """A version is never the same again once the actor has slept."""
    found = ate.good("actor", "get", "demo/one", "-o", "json").json
    return found["status"]["state"], found["metadata"]["version"]


def _tables() -> str:
    """The machine's own; an actor's are in its namespaces and go with them."""
    words = ["nft", "list", "tables"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("system", "process"), CASES, indirect=["system"])
async def test_a_killed_process_comes_back_and_takes_no_actor_with_it(
    system: Ate, process: str
) -> None:
    count = system.count(add=True)
    here = system.worker()
    workers = {"the actor's worker": here, "the other worker": OTHER[here]}
    name = workers.get(process, process)
    activation = _activation(system)
    before, pid = system.processes(), system.kill(name)
    assert await _answers(system) == count
    await _all_ready(system)
    assert system.pid(name) != pid
    # Its own end is told apart from that of a child, after which it may go on.
    parent = name.partition("'s ")[0]
    again = system.processes()[parent]
    assert name != parent or again["restarts"] > before[parent]["restarts"]
    if name != here:
        # However long the others were away, nobody took it for lost with its worker.
        assert _activation(system) == activation
    system.good("actor", "suspend", "demo/one")
    assert system.count() == count


async def test_after_every_kill_all_slots_can_still_be_taken(system: Ate) -> None:
    for name in system.processes():
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
    up = system.up(*FLAGS)
    assert up.code == 0, up
    assert await _answers(system) == count
    assert system.good("down").out == "down\n"
    assert system.left_behind() == []


@pytest.mark.parametrize("all_of_it", [False, True])
async def test_down_cleans_up_after_a_killed_supervisor(system: Ate, all_of_it: bool) -> None:
    up = system.up(*FLAGS)
    assert up.code == 0, up
    count = await _answers(system)
    # Told of the supervisor's end, the others stop in order; killed with it, they cannot.
    pids = [system.pid(name) for name in system.processes()] if all_of_it else []
    system.kill("supervisor")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    down = system.good("down")
    assert "cleaned up" in down.out
    assert system.left_behind() == []
    assert "atenet" not in _tables()
    assert "nothing is running" in system.good("down").out
    assert system.up("--workers", "1").code == 0
    assert await _answers(system) == count
    assert system.good("down").out == "down\n"
    assert system.left_behind() == []
