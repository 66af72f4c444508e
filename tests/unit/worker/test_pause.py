"""Pausing freezes an actor where it is; nothing but its ingress is lost."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.worker.sandbox import Freezer, FreezeUnavailableError
from atenet.worker.supervisor import Checkpoint, NotHostedError
from atenet.worker.workload import State

from tests.support.actor_box import (
    GET,
    HTTP_ACTOR,
    ActorBox,
    ask,
    http_probe,
    new_incarnation,
    processes_of,
    python,
    template,
)
from tests.support.eventually import eventually
from tests.support.hosting import Hosting, hosting

# Its number of the beat is in its memory alone; it is written down as proof of life.
BEATING = (
    "import threading, time, pathlib\n"
    "def beat():\n"
    "    n = 0\n"
    "    while True:\n"
    "        n += 1\n"
    "        pathlib.Path('/data/beat').write_text(str(n))\n"
    "        time.sleep(0.005)\n"
    "threading.Thread(target=beat, daemon=True).start()\n" + HTTP_ACTOR
)


@pytest.fixture
async def host(box: ActorBox) -> AsyncIterator[Hosting]:
    async with hosting(box) as made:
        yield made


def _beat(host: Hosting, uid: str) -> int:
    with suppress(ValueError):
        return int((host.box.data_of(uid) / "beat").read_text())
    return 0


@pytest.mark.conformance("T-05")
async def test_a_paused_actor_stands_still_and_has_no_ingress(host: Hosting) -> None:
    actor, witness = new_incarnation(), new_incarnation("witness")
    for each in (actor, witness):
        await host.run(each, template(*python(BEATING), probe=http_probe()))
    before = processes_of(actor.uid)
    await host.supervisor.pause(actor)
    assert list(host.ingress.open) == [witness]
    assert host.ingress.events[-1] == ("deactivate", actor.uid, 5.0)
    stands = _beat(host, actor.uid)
    later = _beat(host, witness.uid) + 20
    await eventually(lambda: _beat(host, witness.uid) >= later)
    assert _beat(host, actor.uid) == stands
    assert processes_of(actor.uid) == before
    assert host.supervisor.hosted() == [actor.uid, witness.uid]
    assert host.supervisor.workloads()[0].state is State.PAUSED
    await host.supervisor.thaw(actor)
    await eventually(lambda: _beat(host, actor.uid) > stands)
    assert processes_of(actor.uid) == before
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")


async def test_requests_that_run_have_their_grace_before_it_freezes(host: Hosting) -> None:
    actor = new_incarnation()
    host.ingress.hold = True
    await host.run(actor, template(probe=http_probe()))
    gateway = host.gateway(actor)
    pausing = asyncio.ensure_future(host.supervisor.pause(actor))
    await host.ingress.closing.wait()
    assert (await ask(gateway, GET)).endswith(b"hello")
    host.ingress.let_go.set()
    await pausing


async def test_pausing_and_thawing_again_changes_nothing(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template())
    for _ in range(2):
        await host.supervisor.pause(actor)
    for _ in range(2):
        await host.supervisor.thaw(actor)
    told = [event for event, *_ in host.ingress.events]
    assert told == ["activate", "deactivate", "activate"]
    assert [event for event, _ in host.egress.events] == ["open", "hold", "resume"]


async def test_where_nothing_can_be_frozen_it_stays_reachable(
    host: Hosting, tmp_path: Path
) -> None:
    actor = new_incarnation()
    await host.run(actor, template(probe=http_probe()))
    host.box.sandbox.freezer = Freezer(host.box.prefix, tmp_path / "no-cgroups")
    with pytest.raises(FreezeUnavailableError, match="cannot be frozen on this node"):
        await host.supervisor.pause(actor)
    assert [event for event, *_ in host.ingress.events] == ["activate"]
    assert [event for event, _ in host.egress.events] == ["open"]
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")


async def test_a_freeze_that_fails_half_way_opens_ingress_again(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template(probe=http_probe()))

    class Failing(Freezer):
        def freeze(self, name: str, processes: object) -> None:
            raise FreezeUnavailableError("as ordered")

    host.box.sandbox.freezer = Failing(host.box.prefix)
    with pytest.raises(AteError, match="as ordered"):
        await host.supervisor.pause(actor)
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")


async def test_a_paused_actor_is_stored_and_terminated_as_any_other(host: Hosting) -> None:
    stored, ended = new_incarnation(), new_incarnation()
    ending = "import signal, sys\nsignal.signal(15, lambda *_: (open('/data/said', 'w').write('bye'), sys.exit()))\n"
    await host.run(stored, template(*python(ending + HTTP_ACTOR), probe=http_probe()))
    await host.run(ended, template())
    for actor in (stored, ended):
        await host.supervisor.pause(actor)
    assert await host.supervisor.checkpoint(stored, if_idle=60) is Checkpoint.STOPPED
    assert (host.box.data_of(stored.uid) / "said").read_text() == "bye", "it was asked to stop"
    await host.supervisor.terminate(ended)
    assert host.supervisor.hosted() == []
    assert processes_of(stored.uid) == processes_of(ended.uid) == []


async def test_one_that_dies_while_it_is_paused_is_reported(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template())
    await host.supervisor.pause(actor)
    for pid in processes_of(actor.uid):
        os.kill(pid, signal.SIGKILL)
    host.box.sandbox.freezer.thaw(_group_of(host))  # version 1 lets nobody die before
    await eventually(lambda: [] in host.changes)
    with pytest.raises(NotHostedError):
        await host.supervisor.thaw(actor)


def _group_of(host: Hosting) -> str:
    (group,) = host.supervisor.workloads()
    assert group._network is not None
    return group._network.name


async def test_strangers_are_neither_paused_nor_thawed(host: Hosting) -> None:
    for call in (host.supervisor.pause, host.supervisor.thaw):
        with pytest.raises(NotHostedError):
            await call(new_incarnation())


async def test_one_in_use_is_left_alone_when_only_an_idle_one_is_wanted(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template(probe=http_probe()))
    host.ingress.in_use = True
    assert await host.supervisor.checkpoint(actor, if_idle=60) is Checkpoint.IN_USE
    assert host.ingress.events[-1] == ("close_if_idle", actor.uid, 60)
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")
    assert host.supervisor.hosted() == [actor.uid]
    host.ingress.in_use = False
    assert await host.supervisor.checkpoint(actor, if_idle=60) is Checkpoint.STOPPED
