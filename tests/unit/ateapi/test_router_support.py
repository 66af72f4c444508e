"""RouterSupport/Watch: what routers are told as it happens, over real mTLS."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from atenet.ateapi.metrics import Metrics
from atenet.ateapi.service.support import RouterSupport
from atenet.ateapi.store.news import ActorNews, News, Topic
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import routersupport_pb2 as support_pb
from atenet.proto import routersupport_pb2_grpc as support_grpc

from tests.support.control_plane import (
    ControlPlane,
    control_plane,
    pause,
    ref,
    resume,
    revert,
    suspend,
)
from tests.support.eventually import eventually, within

Codes = grpc.StatusCode


class Router:
    """One that watches."""

    def __init__(self, plane: ControlPlane, spiffe_id: str = spiffe.ROUTER_ID) -> None:
        channel = plane.channel(spiffe_id.rpartition("/")[2], spiffe_id)
        self.call: Any = support_grpc.RouterSupportStub(channel).Watch(support_pb.WatchRequest())

    async def next(self) -> support_pb.WatchEvent:
        event = await within(self.call.read(), 10)
        assert isinstance(event, support_pb.WatchEvent)
        return event

    async def until(self, kind: str) -> support_pb.WatchEvent:
        """The next event of this kind."""
        while (event := await self.next()).WhichOneof("event") != kind:
            continue
        return event


@pytest.fixture
async def router(plane: ControlPlane) -> AsyncIterator[Router]:
    made = Router(plane)
    assert (await made.next()).WhichOneof("event") == "synced", "the first word"
    yield made
    made.call.cancel()


async def test_a_suspend_ends_the_assignment_at_its_first_step_and_frees_a_slot(
    plane: ControlPlane, router: Router
) -> None:
    await plane.seed("a")
    await plane.register(slots=1)
    running = (await plane.control().ResumeActor(resume("a"))).actor
    await router.until("capacity_freed")  # the worker came
    release = plane.atelet.stall("Checkpoint")
    suspending = asyncio.ensure_future(plane.control().SuspendActor(suspend("a")))
    ended = (await router.next()).assignment_ended
    assert (ended.actor, ended.actor_uid) == (ref("a"), running.metadata.uid)
    assert ended.version > running.metadata.version
    release()
    await suspending
    kinds = {(await router.next()).WhichOneof("event") for _ in range(2)}
    assert kinds == {"capacity_freed", "assignment_ended"}, "it rests: ask again"


async def test_every_way_out_of_an_assignment_is_told(plane: ControlPlane, router: Router) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()

    async def running() -> int:
        while True:
            try:
                return int((await control.ResumeActor(resume("a"))).actor.metadata.version)
            except grpc.aio.AioRpcError as e:
                # The recovery of a lost worker's actor holds it for a moment.
                if e.code() is not Codes.ABORTED:
                    raise
                await asyncio.sleep(0.02)

    version = await running()
    await control.PauseActor(pause("a"))
    assert (await router.until("assignment_ended")).assignment_ended.version > version
    version = await running()
    await control.RevertActor(revert("a"))
    while (await router.until("assignment_ended")).assignment_ended.version <= version:
        continue
    version = await running()
    plane.atelet.hosted["worker-1"].clear()
    await plane.register(epoch=2)
    while (await router.until("assignment_ended")).assignment_ended.version <= version:
        continue
    version = await running()
    await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a"), any_state=True))
    while (await router.until("assignment_ended")).assignment_ended.version <= version:
        continue


async def test_a_resume_and_a_warm_read_are_nothing_to_tell(
    plane: ControlPlane, router: Router
) -> None:
    await plane.seed("a", "b")
    await plane.register()
    await router.until("capacity_freed")
    for _ in range(2):
        await plane.control().ResumeActor(resume("a"))
    await plane.register()  # a heartbeat
    await plane.control().ResumeActor(resume("b"))
    await plane.control().SuspendActor(suspend("b"))
    event = await router.next()
    assert event.assignment_ended.actor == ref("b"), "the first thing since"


@pytest.mark.conformance("C-01")
@pytest.mark.parametrize("who", [spiffe.CLI_ID, spiffe.EGRESS_ID, spiffe.ATELET_ID])
async def test_only_routers_are_told(plane: ControlPlane, who: str) -> None:
    denied = Router(plane, who)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await denied.next()
    assert caught.value.code() is Codes.PERMISSION_DENIED
    assert await plane.metric("ateapi_router_watches") == 0


async def test_a_router_that_leaves_is_forgotten(plane: ControlPlane) -> None:
    routers = [Router(plane) for _ in range(3)]
    for router in routers:
        await router.next()
    assert await plane.metric("ateapi_router_watches") == 3
    for router in routers:
        router.call.cancel()

    async def gone() -> bool:
        return await plane.metric("ateapi_router_watches") == 0

    await eventually(gone)


async def test_a_stop_ends_every_watch_at_once(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_its_own_process():
        router = Router(plane)
        await router.next()
        began = time.monotonic()
        assert await plane.terminate() == (0, b"")
        assert time.monotonic() - began < plane.drain_timeout / 2
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await router.next()
        assert caught.value.code() is Codes.UNAVAILABLE


# ---------------------------------------------------------------- a router that does not read


class _Open:
    """Lets everybody in."""

    async def admit(self, _context: object, _path: str) -> None:
        return


def _ended(number: int) -> News:
    return News(Topic.ACTOR, ActorNews("team", f"a{number}", "uid", 2).subject)


@contextlib.asynccontextmanager
async def _watching(support: RouterSupport) -> AsyncIterator[Any]:
    watching: Any = support._watch(support_pb.WatchRequest(), None)  # type: ignore[arg-type]
    assert (await anext(watching)).WhichOneof("event") == "synced"
    yield watching
    await watching.aclose()


async def test_a_slow_router_is_told_to_look_at_everything_anew() -> None:
    support = RouterSupport(_Open(), Metrics(), queue=8)  # type: ignore[arg-type]
    async with _watching(support) as slow, _watching(support) as quick:
        for number in range(20):
            support.heard(_ended(number))
            assert (await anext(quick)).assignment_ended.actor.name == f"a{number}"
        told = [await anext(slow)]
        while told[-1].assignment_ended.actor.name != "a19":
            told.append(await anext(slow))
        assert told[0].WhichOneof("event") == "synced"
        assert len(told) <= 8


async def test_capacity_is_told_once_and_what_was_missed_swallows_the_rest() -> None:
    support = RouterSupport(_Open(), Metrics())  # type: ignore[arg-type]
    async with _watching(support) as router:
        for _ in range(5):
            support.heard(News(Topic.CAPACITY, "worker-1"))
        support.heard(News(Topic.POLICY, "uid"))
        support.heard(_ended(1))
        assert (await anext(router)).WhichOneof("event") == "capacity_freed"
        assert (await anext(router)).WhichOneof("event") == "assignment_ended"
        support.heard(_ended(2))
        support.heard(News(Topic.ANYTHING))
        support.heard(_ended(3))
        assert (await anext(router)).WhichOneof("event") == "synced"
        assert (await anext(router)).assignment_ended.actor.name == "a3"
