"""The stored steps of pause and revert; see `changes` for how they are meant."""

from __future__ import annotations

from atenet.ateapi.failure import aborted
from atenet.ateapi.records import actor_label
from atenet.ateapi.store import Transaction
from atenet.ateapi.workflows import rows
from atenet.ateapi.workflows.changes import Change
from atenet.proto import ateapi_pb2 as pb

__all__ = ["begin_pause", "begin_revert", "begin_thaw", "paused", "reverted"]


def begin_pause(uid: str, *, now: float) -> Change:
    """RUNNING → PAUSING."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_RUNNING)
        actor.status.state = pb.ACTOR_STATE_PAUSING
        actor.status.in_progress_local_snapshot_name = _frozen_name(actor.status.worker_assignment)
        return rows.save(tx, actor, now)

    return change


def paused(uid: str, *, now: float) -> Change:
    """PAUSING → PAUSED. It keeps its slot, and counts as idle from here on."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_PAUSING)
        status = actor.status
        tx.workers.idle(status.worker_assignment.worker.name, {uid: now})
        status.state = pb.ACTOR_STATE_PAUSED
        status.local_snapshot.snapshot_name = status.in_progress_local_snapshot_name
        status.local_snapshot.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_FULL
        status.in_progress_local_snapshot_name = ""
        status.ClearField("worker_assignment")
        return rows.save(tx, actor, now)

    return change


def begin_thaw(uid: str, *, now: float) -> Change:
    """PAUSED → RESUMING in the slot that it has; its local snapshot says that it is to be thawed."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_PAUSED)
        claim = rows.assign_as_claimed(tx, actor)
        if claim is None:
            raise aborted(f"{actor_label(actor)} lost its slot meanwhile")
        tx.workers.idle(claim.worker, {uid: None})
        actor.status.state = pb.ACTOR_STATE_RESUMING
        return rows.save(tx, actor, now)

    return change


def begin_revert(uid: str, *, now: float) -> Change:
    """RUNNING, PAUSED or CRASHED → REVERTING. The slot is held until the node has let go."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(
            tx, uid, pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED, pb.ACTOR_STATE_CRASHED
        )
        if actor.status.state == pb.ACTOR_STATE_PAUSED:
            rows.assign_as_claimed(tx, actor)
        actor.status.state = pb.ACTOR_STATE_REVERTING
        return rows.save(tx, actor, now)

    return change


def reverted(uid: str, *, now: float) -> Change:
    """REVERTING → SUSPENDED as of the last external snapshot; the slot is free."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_REVERTING)
        tx.workers.release(uid)
        rows.unassign(actor, pb.ACTOR_STATE_SUSPENDED)
        if actor.status.crash.snapshot_unusable:
            _step_down(tx, actor)
        actor.status.ClearField("crash")
        return rows.save(tx, actor, now)

    return change


def _step_down(tx: Transaction, actor: pb.Actor) -> None:
    """Its snapshot was what it could not start from: next time without the memory in it, and if
    there was none, from the beginning."""
    status = actor.status
    if status.external_snapshot.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_FULL:
        status.external_snapshot.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_DATA
    elif status.HasField("external_snapshot"):
        tx.garbage.add(status.external_snapshot.snapshot_uri)
        status.ClearField("external_snapshot")


def _frozen_name(assignment: pb.WorkerAssignment) -> str:
    """What is kept is a frozen process tree of one incarnation of a worker."""
    return f"frozen/{assignment.worker.name}/{assignment.worker_epoch}"
