"""ResumeActor, row by row of the contract's table."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, ref, resume, suspend

Codes = grpc.StatusCode


async def test_a_suspended_actor_is_started_and_gets_an_assignment(plane: ControlPlane) -> None:
    (before,) = await plane.seed("a")
    await plane.register()
    answer = await plane.control(spiffe.ROUTER_ID).ResumeActor(resume("a"))
    assert answer.resumed
    assert answer.actor.status.state == pb.ACTOR_STATE_RUNNING
    assignment = answer.actor.status.worker_assignment
    assert assignment.worker.name == "worker-1"
    assert list(assignment.worker_pod_ips) == ["127.1.0.1"]
    assert assignment.worker_spiffe_id == "spiffe://cluster.local/ns/default/sa/local"
    assert assignment.worker_epoch == 1
    assert answer.actor.metadata.version > before.metadata.version
    assert plane.atelet.calls[0].peer == spiffe.API_ID


async def test_a_running_actor_is_read_and_nothing_else_happens(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    router = plane.control(spiffe.ROUTER_ID)
    first = await router.ResumeActor(resume("a"))
    calls = len(plane.atelet.calls)
    second = await router.ResumeActor(resume("a"))
    assert not second.resumed
    assert second.actor == first.actor
    assert len(plane.atelet.calls) == calls


@pytest.mark.parametrize(
    ("reference", "field"),
    [
        (None, "actor.atespace"),
        (ref("", "team-a"), "actor.name"),
        (ref("a", ""), "actor.atespace"),
        (ref("A", "team-a"), "actor.name"),
        (ref("a", "team_a"), "actor.atespace"),
        (ref("a" * 64, "team-a"), "actor.name"),
        (ref("a/b", "team-a"), "actor.name"),
    ],
)
async def test_a_bad_reference_is_named(
    plane: ControlPlane, reference: pb.ObjectRef | None, field: str
) -> None:
    code, message = await code_of(
        plane.control().ResumeActor(pb.ResumeActorRequest(actor=reference))
    )
    assert code == "INVALID_ARGUMENT"
    assert message.startswith(f"{field}:")


async def test_an_unknown_actor_is_not_found(plane: ControlPlane) -> None:
    assert (await code_of(plane.control().ResumeActor(resume("nobody"))))[0] == "NOT_FOUND"


# B020, B025
async def test_without_room_nothing_changes_and_no_node_is_called(plane: ControlPlane) -> None:
    (before,) = await plane.seed("a")
    assert await code_of(plane.control().ResumeActor(resume("a"))) == (
        "RESOURCE_EXHAUSTED",
        "no free workers available",
    )
    await plane.register(slots=1)
    await plane.seed("b")
    await plane.control().ResumeActor(resume("b"))
    calls = len(plane.atelet.calls)
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "RESOURCE_EXHAUSTED"
    assert await plane.get("a") == before
    assert len(plane.atelet.calls) == calls


async def test_a_second_resume_while_one_runs_is_aborted_and_the_first_succeeds(
    plane: ControlPlane,
) -> None:
    await plane.seed("a")
    await plane.register()
    release = plane.atelet.stall("Run")
    first = asyncio.ensure_future(plane.control().ResumeActor(resume("a")))
    await plane.atelet.arrived("Run")
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "ABORTED"
    assert (await code_of(plane.control().SuspendActor(suspend("a"))))[0] == "ABORTED"
    release()
    assert (await first).resumed
    assert plane.atelet.count("Run") == 1


# B033, B034
async def test_a_caller_that_leaves_does_not_stop_the_resume(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    release = plane.atelet.stall("Run")
    call = plane.control().ResumeActor(resume("a"))
    waiting = asyncio.ensure_future(call)
    await plane.atelet.arrived("Run")
    waiting.cancel()
    release()
    await plane.until("a", "RUNNING")
    assert plane.atelet.count("Run") == 1


# B022: what has its worker goes on there.
async def test_an_unavailable_node_leaves_it_resuming_and_a_retry_continues_on_the_same_worker(
    plane: ControlPlane,
) -> None:
    await plane.seed("a")
    await plane.register("worker-1")
    await plane.register("worker-2")
    plane.atelet.script("Run", Codes.UNAVAILABLE)
    code, message = await code_of(plane.control().ResumeActor(resume("a")))
    assert code == "UNAVAILABLE"
    assert "/secret/path" not in message
    stuck = await plane.get("a")
    assert stuck.status.state == pb.ACTOR_STATE_RESUMING
    answer = await plane.control().ResumeActor(resume("a"))
    assert answer.resumed
    assert answer.actor.status.worker_assignment == stuck.status.worker_assignment


@pytest.mark.parametrize("failure", [Codes.INTERNAL, Codes.INVALID_ARGUMENT, Codes.DATA_LOSS])
async def test_a_start_that_failed_for_good_crashes_the_actor_and_frees_the_slot(
    plane: ControlPlane, failure: grpc.StatusCode
) -> None:
    await plane.seed("a", "b")
    await plane.register(slots=1)
    plane.atelet.script("Run", failure)
    code, message = await code_of(plane.control().ResumeActor(resume("a")))
    assert code == "INTERNAL"
    assert "/secret/path" not in message
    crashed = await plane.get("a")
    assert crashed.status.state == pb.ACTOR_STATE_CRASHED
    assert failure.name in crashed.status.crash.message
    assert crashed.status.crash.HasField("crash_time")
    assert not crashed.status.HasField("worker_assignment")
    assert (await plane.control().ResumeActor(resume("b"))).resumed


# B026
async def test_a_crashed_actor_is_not_resumed_and_says_so(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    plane.atelet.script("Run", Codes.INTERNAL)
    await code_of(plane.control().ResumeActor(resume("a")))
    before = await plane.get("a")
    code, message = await code_of(plane.control().ResumeActor(resume("a")))
    assert code == "FAILED_PRECONDITION"
    assert "CRASHED" in message
    assert await plane.get("a") == before


async def test_a_refusal_that_no_registration_explains_is_for_good(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    plane.atelet.script("Run", Codes.FAILED_PRECONDITION)
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "INTERNAL"
    assert await plane.state("a") == "CRASHED"


async def test_a_worker_that_restarted_meanwhile_gets_the_actor_again(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register(epoch=1)
    plane.atelet.script("Run", Codes.FAILED_PRECONDITION)
    waiting = asyncio.ensure_future(plane.control().ResumeActor(resume("a")))
    await plane.atelet.arrived("Run")
    await plane.register(epoch=2)
    answer = await waiting
    assert answer.actor.status.worker_assignment.worker_epoch == 2
    assert plane.atelet.last("Run").handle.worker_epoch == 2


async def test_a_resume_from_a_snapshot_restores_it(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    suspended = (await control.SuspendActor(suspend("a"))).actor
    await control.ResumeActor(resume("a"))
    restored = plane.atelet.last("Restore")
    assert restored.snapshot_uri == suspended.status.external_snapshot.snapshot_uri
    assert restored.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_DATA
    assert restored.template.metadata.name == "tpl"
