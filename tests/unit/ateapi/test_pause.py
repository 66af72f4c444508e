"""PauseActor and RevertActor, and the ways out of PAUSED."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import (
    ControlPlane,
    code_of,
    pause,
    ref,
    resume,
    revert,
    suspend,
)

Codes = grpc.StatusCode


async def _paused(plane: ControlPlane, **given: int) -> pb.Actor:
    await plane.seed("a", "b")
    await plane.register(**given)
    await plane.control().ResumeActor(resume("a"))
    return (await plane.control().PauseActor(pause("a"))).actor


async def test_a_paused_actor_is_frozen_and_keeps_its_slot(plane: ControlPlane) -> None:
    paused = await _paused(plane, slots=1)
    assert paused.status.state == pb.ACTOR_STATE_PAUSED
    assert not paused.status.HasField("worker_assignment")
    assert paused.status.assigned_node == "node-1"
    assert paused.status.local_snapshot.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_FULL
    assert plane.atelet.frozen == {paused.metadata.uid}
    code, _ = await code_of(plane.control().ResumeActor(resume("b")))
    assert code == "RESOURCE_EXHAUSTED"


async def test_pausing_a_paused_actor_succeeds_and_does_nothing(plane: ControlPlane) -> None:
    paused = await _paused(plane)
    assert (await plane.control().PauseActor(pause("a"))).actor == paused
    assert plane.atelet.count("Pause") == 1


async def test_a_resume_thaws_it_where_it_is(plane: ControlPlane) -> None:
    await _paused(plane, slots=1)
    answer = await plane.control().ResumeActor(resume("a"))
    assert answer.resumed
    assert answer.actor.status.state == pb.ACTOR_STATE_RUNNING
    assert answer.actor.status.worker_assignment.worker.name == "worker-1"
    assert list(answer.actor.status.worker_assignment.worker_pod_ips) == ["127.1.0.1"]
    assert not answer.actor.status.HasField("local_snapshot")
    assert plane.atelet.frozen == set()
    assert (plane.atelet.count("Run"), plane.atelet.count("Restore")) == (1, 0)


async def test_a_thaw_that_the_node_cannot_do_now_is_continued(plane: ControlPlane) -> None:
    await _paused(plane)
    plane.atelet.script("Thaw", Codes.UNAVAILABLE)
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "UNAVAILABLE"
    assert await plane.state("a") == "RESUMING"
    assert (await plane.control().ResumeActor(resume("a"))).resumed
    assert plane.atelet.count("Thaw") == 2


@pytest.mark.parametrize("refusal", [Codes.NOT_FOUND, Codes.INTERNAL])
async def test_memory_that_is_lost_costs_the_memory_only(
    plane: ControlPlane, refusal: grpc.StatusCode
) -> None:
    await _paused(plane)
    plane.atelet.script("Thaw", refusal)
    answer = await plane.control().ResumeActor(resume("a"))
    assert answer.actor.status.state == pb.ACTOR_STATE_RUNNING
    stored = answer.actor.status.external_snapshot.snapshot_uri
    assert plane.atelet.last("Restore").snapshot_uri == stored


@pytest.mark.conformance("C-05")
async def test_a_paused_actor_on_a_worker_that_restarted_resumes_elsewhere(
    plane: ControlPlane,
) -> None:
    await _paused(plane, slots=1)
    plane.atelet.frozen.clear()
    plane.atelet.hosted["worker-1"].clear()
    await plane.register(slots=1, epoch=2)
    suspended = await plane.until("a", "SUSPENDED")
    assert suspended.status.external_snapshot.snapshot_uri
    assert not suspended.status.HasField("local_snapshot")
    assert (await plane.control().ResumeActor(resume("b"))).resumed, "its slot is free"


async def test_a_paused_actor_that_its_worker_lost_is_suspended(plane: ControlPlane) -> None:
    paused = await _paused(plane)
    plane.atelet.hosted["worker-1"].discard(paused.metadata.uid)
    for _ in range(2):
        await plane.register()
    await plane.until("a", "SUSPENDED")


async def test_a_paused_actor_is_suspended_from_where_it_is(plane: ControlPlane) -> None:
    await _paused(plane, slots=1)
    done = (await plane.control().SuspendActor(suspend("a"))).actor
    assert done.status.state == pb.ACTOR_STATE_SUSPENDED
    assert plane.atelet.last("Checkpoint").handle.worker == "worker-1"
    assert plane.atelet.frozen == set()
    assert (await plane.control().ResumeActor(resume("b"))).resumed


async def test_a_paused_actor_is_deleted_from_where_it_is(plane: ControlPlane) -> None:
    await _paused(plane, slots=1)
    request = pb.DeleteActorRequest(actor=ref("a"))
    assert (await code_of(plane.control().DeleteActor(request)))[0] == "FAILED_PRECONDITION"
    request.any_state = True
    await plane.control().DeleteActor(request)
    assert plane.atelet.frozen == set()
    assert not plane.atelet.hosted["worker-1"]
    assert (await plane.control().ResumeActor(resume("b"))).resumed


async def test_where_nothing_can_be_frozen_it_runs_on(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    running = (await plane.control().ResumeActor(resume("a"))).actor
    plane.atelet.script("Pause", Codes.UNIMPLEMENTED)
    code, message = await code_of(plane.control().PauseActor(pause("a")))
    assert code == "FAILED_PRECONDITION"
    assert "cgroup freezer" in message
    now = await plane.get("a")
    assert now.status == running.status


async def test_an_unavailable_node_leaves_it_pausing_and_a_retry_continues(
    plane: ControlPlane,
) -> None:
    await plane.seed("a")
    await plane.register()
    await plane.control().ResumeActor(resume("a"))
    plane.atelet.script("Pause", Codes.UNAVAILABLE)
    assert (await code_of(plane.control().PauseActor(pause("a"))))[0] == "UNAVAILABLE"
    assert await plane.state("a") == "PAUSING"
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "FAILED_PRECONDITION"
    done = (await plane.control().PauseActor(pause("a"))).actor
    assert done.status.state == pb.ACTOR_STATE_PAUSED


async def test_a_pause_on_a_worker_that_died_stores_what_is_on_disk(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    await plane.control().ResumeActor(resume("a"))
    plane.atelet.script("Pause", Codes.NOT_FOUND)
    code, message = await code_of(plane.control().PauseActor(pause("a")))
    assert code == "FAILED_PRECONDITION"
    assert "SUSPENDED" in message
    assert await plane.state("a") == "SUSPENDED"


@pytest.mark.parametrize("word", ["SUSPENDED", "CRASHED"])
async def test_only_a_running_actor_is_paused(plane: ControlPlane, word: str) -> None:
    await plane.seed("a")
    await plane.register()
    if word == "CRASHED":
        plane.atelet.script("Run", Codes.INTERNAL)
        await code_of(plane.control().ResumeActor(resume("a")))
    code, message = await code_of(plane.control().PauseActor(pause("a")))
    assert code == "FAILED_PRECONDITION"
    assert word in message


async def test_a_second_operation_while_one_runs_is_aborted(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    await plane.control().ResumeActor(resume("a"))
    release = plane.atelet.stall("Pause")
    first = asyncio.ensure_future(plane.control().PauseActor(pause("a")))
    await plane.atelet.arrived("Pause")
    for call in (
        plane.control().PauseActor(pause("a")),
        plane.control().RevertActor(revert("a")),
        plane.control().SuspendActor(suspend("a")),
    ):
        assert (await code_of(call))[0] == "ABORTED"
    release()
    assert (await first).actor.status.state == pb.ACTOR_STATE_PAUSED


# ---------------------------------------------------------------- revert


@pytest.mark.parametrize("word", ["RUNNING", "PAUSED", "CRASHED"])
async def test_a_revert_goes_back_to_the_last_snapshot(plane: ControlPlane, word: str) -> None:
    await plane.seed("a", "b")
    await plane.register(slots=1)
    control = plane.control()
    await control.ResumeActor(resume("a"))
    kept = (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
    if word == "CRASHED":
        plane.atelet.script("Restore", Codes.INTERNAL)
        await code_of(control.ResumeActor(resume("a")))
    else:
        await control.ResumeActor(resume("a"))
    if word == "PAUSED":
        await control.PauseActor(pause("a"))
    assert await plane.state("a") == word
    done = (await control.RevertActor(revert("a"))).actor
    assert done.status == pb.ActorStatus(state=pb.ACTOR_STATE_SUSPENDED, external_snapshot=kept), (
        "no assignment, no crash, no memory"
    )
    assert plane.atelet.count("Checkpoint") == 1, "what it did since is not kept"
    assert not plane.atelet.hosted["worker-1"]
    await control.ResumeActor(resume("a"))
    assert plane.atelet.last("Restore").snapshot_uri == kept.snapshot_uri


async def test_one_that_was_never_stored_goes_back_to_its_beginning(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()
    plane.atelet.script("Run", Codes.INTERNAL)
    await code_of(control.ResumeActor(resume("a")))
    done = (await control.RevertActor(revert("a"))).actor
    assert done.status.state == pb.ACTOR_STATE_SUSPENDED
    assert (await control.ResumeActor(resume("a"))).resumed
    assert plane.atelet.count("Run") == 2


async def test_reverting_a_suspended_actor_succeeds_and_does_nothing(plane: ControlPlane) -> None:
    (before,) = await plane.seed("a")
    assert (await plane.control().RevertActor(revert("a"))).actor == before


async def test_an_unavailable_node_leaves_it_reverting_and_a_retry_continues(
    plane: ControlPlane,
) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    plane.atelet.script("Terminate", Codes.UNAVAILABLE)
    assert (await code_of(control.RevertActor(revert("a"))))[0] == "UNAVAILABLE"
    assert await plane.state("a") == "REVERTING"
    # One after the other: a call begins when it is made, and the second would find the actor held.
    assert (await code_of(control.ResumeActor(resume("a"))))[0] == "FAILED_PRECONDITION"
    assert (await code_of(control.SuspendActor(suspend("a"))))[0] == "FAILED_PRECONDITION"
    done = (await control.RevertActor(revert("a"))).actor
    assert done.status.state == pb.ACTOR_STATE_SUSPENDED
