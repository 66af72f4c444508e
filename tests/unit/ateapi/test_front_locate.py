"""RouterSupport/Locate: a router's look-ups on one stream, answered by the front as a resume would be."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import routersupport_pb2 as support_pb
from atenet.proto import routersupport_pb2_grpc as support_grpc
from atenet.rpc import MtlsChannel

from tests.support.control_plane import ControlPlane, control_plane, ref, resume, suspend


def _channel(plane: ControlPlane, caller: str = spiffe.ROUTER_ID) -> MtlsChannel:
    return plane.channel(caller.rpartition("/")[2], caller)


def _locate(plane: ControlPlane, caller: str = spiffe.ROUTER_ID) -> Any:
    return support_grpc.RouterSupportStub(_channel(plane, caller)).Locate()


async def _ask(call: Any, reference: pb.ObjectRef) -> support_pb.LocateResponse:
    await call.write(support_pb.LocateRequest(actor=reference))
    answer: support_pb.LocateResponse = await call.read()
    return answer


@pytest.mark.conformance("C-03")
async def test_look_ups_tell_what_a_resume_would_and_wake_nobody(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="auto"):
        await plane.seed("running", "asleep")
        await plane.register()
        control, call = plane.control(), _locate(plane)
        for _ in range(10):
            assert not (await _ask(call, ref("running"))).HasField("actor")
            await control.ResumeActor(resume("running"))
            # What is committed, each time.
            told = await _ask(call, ref("running"))
            assert told.actor == (await control.ResumeActor(resume("running"))).actor
            await control.SuspendActor(suspend("running"))
        for other in (ref("asleep"), ref("nobody"), ref("UPPER"), pb.ObjectRef()):
            assert not (await _ask(call, other)).HasField("actor")
        found = await control.GetActor(pb.GetActorRequest(actor=ref("asleep")))
        assert found.status.state == pb.ACTOR_STATE_SUSPENDED
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK


async def test_many_look_ups_are_answered_in_their_order_and_counted(tmp_path: Path) -> None:
    # No worker is lost meanwhile: it sends no heartbeats.
    async with (
        control_plane(tmp_path, worker_timeout=60.0) as plane,
        plane.in_process(front="auto"),
    ):
        await plane.seed("a", "b")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        call = _locate(plane)
        asked = [name for _ in range(2000) for name in ("a", "b", "nobody")]

        async def ask() -> None:
            for name in asked:
                await call.write(support_pb.LocateRequest(actor=ref(name)))
            await call.done_writing()

        asking = asyncio.create_task(ask())
        told = [answer.actor.metadata.name async for answer in call]
        await asking
        assert told == [name if name == "a" else "" for name in asked]
        counted = await plane.metric("ateapi_calls_total", method="ResumeActor", code="OK")
        assert counted == 1 + 2000


@pytest.mark.parametrize("caller", [spiffe.EGRESS_ID, spiffe.ATELET_ID, spiffe.CLI_ID])
async def test_only_routers_look_up(tmp_path: Path, caller: str) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="auto"):
        call = _locate(plane, caller)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await call.write(support_pb.LocateRequest(actor=ref("a")))
        assert await call.code() in {
            grpc.StatusCode.PERMISSION_DENIED,
            grpc.StatusCode.UNIMPLEMENTED,
        }


async def test_what_is_no_question_ends_the_stream(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="auto"):
        call = _channel(plane).stream_stream("/ateapi.RouterSupport/Locate")()
        await call.write(bytes(1000))
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_without_a_front_routers_are_told_to_resume(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="off"):
        call = _locate(plane)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await call.write(support_pb.LocateRequest(actor=ref("a")))
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
