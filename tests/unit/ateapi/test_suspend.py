"""SuspendActor: the snapshot, the slot, and what a node's refusal leads to."""

from __future__ import annotations

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, resume, suspend
from tests.support.eventually import eventually
from tests.support.fake_atelet import snapshot_directory

Codes = grpc.StatusCode


async def _running(plane: ControlPlane, name: str = "a", **given: int) -> pb.Actor:
    await plane.seed(name)
    await plane.register(**given)
    return (await plane.control().ResumeActor(resume(name))).actor


async def test_it_leaves_a_snapshot_and_a_free_slot(plane: ControlPlane) -> None:
    running = await _running(plane, slots=1)
    done = (await plane.control().SuspendActor(suspend("a"))).actor
    assert done.status.state == pb.ACTOR_STATE_SUSPENDED
    assert not done.status.HasField("worker_assignment")
    assert not done.status.in_progress_snapshot_uri
    snapshot = done.status.external_snapshot
    meta = running.metadata
    root = plane.root / "snapshots" / meta.atespace / meta.uid
    assert snapshot_directory(snapshot.snapshot_uri).parent == root
    assert snapshot.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_DATA
    assert snapshot.actor_template_uid
    await plane.seed("b")
    assert (await plane.control().ResumeActor(resume("b"))).resumed


async def test_suspending_a_suspended_actor_succeeds_and_does_nothing(plane: ControlPlane) -> None:
    (before,) = await plane.seed("a")
    assert (await plane.control().SuspendActor(suspend("a"))).actor == before
    assert not plane.atelet.calls


async def test_the_second_snapshot_replaces_the_first_once_it_has_proved_good(
    plane: ControlPlane,
) -> None:
    await _running(plane)
    control = plane.control()
    first = (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
    await control.ResumeActor(resume("a"))
    second = (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
    assert first.snapshot_uri != second.snapshot_uri
    assert snapshot_directory(first.snapshot_uri).exists()
    await control.ResumeActor(resume("a"))
    await eventually(lambda: not snapshot_directory(first.snapshot_uri).exists())
    assert snapshot_directory(second.snapshot_uri).exists()


async def test_an_unavailable_node_leaves_it_suspending_and_a_retry_continues(
    plane: ControlPlane,
) -> None:
    await _running(plane)
    plane.atelet.script("Checkpoint", Codes.UNAVAILABLE)
    assert (await code_of(plane.control().SuspendActor(suspend("a"))))[0] == "UNAVAILABLE"
    stuck = await plane.get("a")
    assert stuck.status.state == pb.ACTOR_STATE_SUSPENDING
    assert stuck.status.HasField("worker_assignment")
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "FAILED_PRECONDITION"
    done = (await plane.control().SuspendActor(suspend("a"))).actor
    assert done.status.external_snapshot.snapshot_uri == stuck.status.in_progress_snapshot_uri


async def test_a_failure_for_good_crashes_it_and_frees_the_slot(plane: ControlPlane) -> None:
    await _running(plane, slots=1)
    plane.atelet.script("Checkpoint", Codes.INTERNAL)
    assert (await code_of(plane.control().SuspendActor(suspend("a"))))[0] == "INTERNAL"
    crashed = await plane.get("a")
    assert crashed.status.state == pb.ACTOR_STATE_CRASHED
    assert "INTERNAL" in crashed.status.crash.message
    await plane.seed("b")
    assert (await plane.control().ResumeActor(resume("b"))).resumed


async def test_a_crash_keeps_the_last_complete_snapshot(plane: ControlPlane) -> None:
    await _running(plane)
    control = plane.control()
    kept = (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
    await control.ResumeActor(resume("a"))
    plane.atelet.script("Checkpoint", Codes.DATA_LOSS)
    await code_of(control.SuspendActor(suspend("a")))
    assert (await plane.get("a")).status.external_snapshot == kept
    assert snapshot_directory(kept.snapshot_uri).exists()


async def test_a_resuming_or_crashed_actor_is_not_suspended(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    plane.atelet.script("Run", Codes.UNAVAILABLE, Codes.INTERNAL)
    await code_of(plane.control().ResumeActor(resume("a")))
    assert (await code_of(plane.control().SuspendActor(suspend("a"))))[0] == "FAILED_PRECONDITION"
    await code_of(plane.control().ResumeActor(resume("a")))
    assert (await code_of(plane.control().SuspendActor(suspend("a"))))[0] == "FAILED_PRECONDITION"


@pytest.mark.parametrize("uid", ["", "00000000-0000-0000-0000-000000000000"])
async def test_a_worker_asks_for_suspension_by_uid(plane: ControlPlane, uid: str) -> None:
    running = await _running(plane)
    request = pb.RequestActorSuspendRequest(
        worker=pb.ObjectRef(name="worker-1"),
        actor=pb.ObjectRef(atespace="team-a", name="a"),
        actor_uid=uid,
    )
    service = plane.worker_service()
    wrong = await code_of(service.RequestActorSuspend(request))
    assert wrong[0] == ("ABORTED" if uid else "INVALID_ARGUMENT")
    request.actor_uid = running.metadata.uid
    answer = await service.RequestActorSuspend(request)
    assert answer.actor.status.state == pb.ACTOR_STATE_SUSPENDED
