"""Pause of an actor whose memory its node can keep: the slot is free, and it goes on there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import (
    ControlPlane,
    code_of,
    control_plane,
    pause,
    ref,
    resume,
    revert,
    suspend,
)
from tests.support.eventually import eventually

Codes = grpc.StatusCode
FULL = pb.SNAPSHOT_CONTENT_SCOPE_FULL


async def _paused(plane: ControlPlane) -> pb.Actor:
    """`a`, paused on node-1, whose only worker has one slot; `b` sleeps."""
    await plane.seed("a", "b", memory=True)
    await plane.register(slots=1)
    await plane.control().ResumeActor(resume("a"))
    return (await plane.control().PauseActor(pause("a"))).actor


async def test_its_slot_is_free_and_its_record_says_where_its_memory_is(
    plane: ControlPlane,
) -> None:
    paused = await _paused(plane)
    status = paused.status
    assert status.state == pb.ACTOR_STATE_PAUSED
    assert not status.HasField("worker_assignment")
    assert status.assigned_node == "node-1"
    assert status.in_progress_local_snapshot_name == ""
    assert status.local_snapshot.content_scope == FULL
    assert plane.atelet.kept == {paused.metadata.uid: status.local_snapshot.snapshot_name}
    assert (await plane.control().ResumeActor(resume("b"))).resumed
    assert (await plane.control().PauseActor(pause("a"))).actor == paused, "nothing to do"


async def test_it_goes_on_on_its_node_whichever_worker_has_room(plane: ControlPlane) -> None:
    paused = await _paused(plane)
    await plane.control().ResumeActor(resume("b"))
    await plane.register("worker-2", slots=8, node="node-2")
    await plane.register("worker-3", slots=1)
    answer = await plane.control().ResumeActor(resume("a"))
    assert answer.resumed
    assert answer.actor.status.worker_assignment.worker.name == "worker-3"
    assert not answer.actor.status.HasField("local_snapshot")
    asked = plane.atelet.last("Restore")
    assert asked.local_snapshot_name == paused.status.local_snapshot.snapshot_name
    assert (asked.snapshot_uri, asked.content_scope) == ("", FULL)


async def test_without_room_on_its_node_it_moves_to_another(plane: ControlPlane) -> None:
    await _paused(plane)
    await plane.control().ResumeActor(resume("b"))
    await plane.register("worker-2", node="node-2")
    answer = await plane.control().ResumeActor(resume("a"))
    status = answer.actor.status
    assert status.worker_assignment.node_name == "node-2"
    assert plane.atelet.last("Restore").snapshot_uri == status.external_snapshot.snapshot_uri
    assert plane.atelet.kept == {}


async def test_without_room_anywhere_it_stays_paused(plane: ControlPlane) -> None:
    paused = await _paused(plane)
    await plane.control().ResumeActor(resume("b"))
    code, message = await code_of(plane.control().ResumeActor(resume("a")))
    assert (code, message) == ("RESOURCE_EXHAUSTED", "no free workers available")
    assert await plane.get("a") == paused


async def test_a_suspend_stores_what_the_node_keeps(plane: ControlPlane) -> None:
    paused = await _paused(plane)
    done = (await plane.control().SuspendActor(suspend("a"))).actor
    assert done.status.state == pb.ACTOR_STATE_SUSPENDED
    assert done.status.external_snapshot.content_scope == FULL
    assert not done.status.HasField("local_snapshot")
    assert done.status.assigned_node == ""
    asked = plane.atelet.last("Checkpoint")
    assert asked.local_snapshot_name == paused.status.local_snapshot.snapshot_name
    assert plane.atelet.kept == {}


async def test_a_store_that_does_not_answer_leaves_it_paused(plane: ControlPlane) -> None:
    paused = await _paused(plane)
    plane.atelet.script("Checkpoint", Codes.UNAVAILABLE)
    assert (await code_of(plane.control().SuspendActor(suspend("a"))))[0] == "UNAVAILABLE"
    assert (await plane.get("a")).status == paused.status
    assert (await plane.control().SuspendActor(suspend("a"))).actor.status.state == (
        pb.ACTOR_STATE_SUSPENDED
    )


async def test_one_that_cannot_be_kept_runs_on(plane: ControlPlane) -> None:
    await plane.seed("a", memory=True)
    await plane.register()
    running = (await plane.control().ResumeActor(resume("a"))).actor
    plane.atelet.refuse_pauses = "no room for it"
    code, message = await code_of(plane.control().PauseActor(pause("a")))
    assert code == "FAILED_PRECONDITION"
    assert "runs on: no room for it" in message
    assert (await plane.get("a")).status == running.status


@pytest.mark.parametrize("what", ["revert", "delete"])
async def test_a_revert_and_a_delete_have_the_node_forget_it(
    plane: ControlPlane, what: str
) -> None:
    await _paused(plane)
    control = plane.control()
    if what == "revert":
        done = (await control.RevertActor(revert("a"))).actor
        assert done.status == pb.ActorStatus(state=pb.ACTOR_STATE_SUSPENDED)
    else:
        await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a"), any_state=True))
    assert plane.atelet.kept == {}
    assert plane.atelet.last("Terminate").handle.worker == ""


async def test_a_node_that_was_not_there_forgets_it_when_it_says_what_it_keeps(
    plane: ControlPlane,
) -> None:
    paused = await _paused(plane)
    plane.atelet.script("Terminate", Codes.UNAVAILABLE)
    await plane.control().RevertActor(revert("a"))
    assert plane.atelet.kept != {}
    await plane.register()
    await eventually(lambda: plane.atelet.kept == {})
    # One that a record names stays.
    await plane.control().ResumeActor(resume("a"))
    paused = (await plane.control().PauseActor(pause("a"))).actor
    await plane.register()
    await plane.api_is_quiet()
    assert plane.atelet.kept == {paused.metadata.uid: paused.status.local_snapshot.snapshot_name}


async def test_memory_that_is_gone_crashes_it_and_a_revert_goes_back_to_what_was_stored(
    plane: ControlPlane,
) -> None:
    await plane.seed("a", memory=True)
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    stored = (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
    await control.ResumeActor(resume("a"))
    await control.PauseActor(pause("a"))
    plane.atelet.kept.clear()
    assert (await code_of(control.ResumeActor(resume("a"))))[0] == "INTERNAL"
    crashed = (await plane.get("a")).status
    assert crashed.state == pb.ACTOR_STATE_CRASHED
    assert "not kept here" in crashed.crash.message
    assert not crashed.crash.snapshot_unusable
    done = (await control.RevertActor(revert("a"))).actor
    assert done.status.external_snapshot == stored
    assert stored.content_scope == FULL


async def test_a_worker_that_dies_while_it_starts_leaves_it_paused_or_tries_another(
    plane: ControlPlane,
) -> None:
    paused = await _paused(plane)
    plane.atelet.script("Restore", Codes.UNAVAILABLE)
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "UNAVAILABLE"
    assert await plane.state("a") == "RESUMING"
    await plane.register(slots=1, epoch=2)
    found = await plane.until("a", "PAUSED")
    assert found.status == paused.status
    assert (await plane.control().ResumeActor(resume("a"))).resumed


async def test_a_pause_whose_worker_died_after_it_was_kept_ends_well(plane: ControlPlane) -> None:
    await plane.seed("a", memory=True)
    await plane.register(slots=1)
    running = (await plane.control().ResumeActor(resume("a"))).actor
    plane.atelet.script("Pause", Codes.UNAVAILABLE)
    assert (await code_of(plane.control().PauseActor(pause("a"))))[0] == "UNAVAILABLE"
    pausing = await plane.get("a")
    name = pausing.status.in_progress_local_snapshot_name
    plane.atelet.kept[running.metadata.uid] = name
    plane.atelet.hosted["worker-1"].clear()
    await plane.register(slots=1, epoch=2)
    found = await plane.until("a", "PAUSED")
    assert found.status.local_snapshot.snapshot_name == name


@pytest.fixture
async def lossy(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """Workers are lost after half a second, and nodes after one."""
    async with control_plane(tmp_path) as made:
        made.worker_timeout, made.node_timeout = 0.5, 1.0
        async with made.in_process():
            yield made


async def test_a_node_that_is_lost_crashes_it_when_it_is_to_go_on(lossy: ControlPlane) -> None:
    paused = await _paused(lossy)
    other = {"node": "node-2"}

    async def lost() -> bool:
        await lossy.register("worker-2", **other)
        listed = (await lossy.control().ListWorkers(pb.ListWorkersRequest())).workers
        return {w.metadata.name for w in listed} == {"worker-2"}

    await eventually(lost, 20)
    assert (await lossy.get("a")) == paused, "nobody has asked for it"
    assert (await code_of(lossy.control().ResumeActor(resume("a"))))[0] == "INTERNAL"
    crashed = (await lossy.get("a")).status
    assert crashed.state == pb.ACTOR_STATE_CRASHED
    assert "node node-1 is lost" in crashed.crash.message
    done = (await lossy.control().RevertActor(revert("a"))).actor
    assert done.status == pb.ActorStatus(state=pb.ACTOR_STATE_SUSPENDED)
    await lossy.register("worker-2", **other)
    assert (await lossy.control().ResumeActor(resume("a"))).resumed


# ---------------------------------------------------------------- memory that goes with its worker


@pytest.mark.conformance("C-05")
@pytest.mark.parametrize("stored", [True, False])
async def test_an_actor_whose_memory_went_with_its_worker_is_crashed_and_can_be_reverted(
    plane: ControlPlane, stored: bool
) -> None:
    await plane.seed("a", "b", memory=True)
    await plane.register(slots=1)
    control = plane.control()
    await control.ResumeActor(resume("a"))
    kept = pb.ExternalSnapshot()
    if stored:
        kept = (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
        await control.ResumeActor(resume("a"))
    plane.atelet.hosted["worker-1"].clear()
    await plane.register(slots=1, epoch=2)
    crashed = await plane.until("a", "CRASHED")
    assert "its worker was lost, and its memory with it" in crashed.status.crash.message
    assert not crashed.status.HasField("worker_assignment")
    assert (await code_of(control.ResumeActor(resume("a"))))[0] == "FAILED_PRECONDITION"
    done = (await control.RevertActor(revert("a"))).actor
    found = done.status.external_snapshot
    if stored:
        assert found == kept
    else:
        assert found.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_DATA
        assert found.snapshot_uri == plane.atelet.last("Checkpoint").snapshot_uri
    assert (await control.ResumeActor(resume("b"))).resumed, "its slot is free"
