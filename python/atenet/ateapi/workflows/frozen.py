"""The stored steps of pause and revert; see `changes` for how they are meant."""

from __future__ import annotations

import uuid

from atenet.ateapi.failure import aborted
from atenet.ateapi.records import FROZEN, actor_label
from atenet.ateapi.store import Transaction
from atenet.ateapi.workflows import rows
from atenet.ateapi.workflows.changes import Change
from atenet.ateapi.workflows.last_good import Target
from atenet.proto import ateapi_pb2 as pb

_CLASSES_WITH_MEMORY = ("gvisor",)

__all__ = ["begin_pause", "begin_revert", "begin_thaw", "paused", "reverted"]


def begin_pause(uid: str, *, now: float) -> Change:
    """RUNNING → PAUSING."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_RUNNING)
        actor.status.state = pb.ACTOR_STATE_PAUSING
        template = tx.templates.get(actor.actor_template.atespace, actor.actor_template.name)
        actor.status.in_progress_local_snapshot_name = _new_name(actor, template)
        return rows.save(tx, actor, now)

    return change


def paused(uid: str, *, now: float) -> Change:
    """PAUSING → PAUSED. A frozen one keeps its slot, and counts as idle from here on; the slot of
    one that its node keeps is free."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_PAUSING)
        status = actor.status
        if status.in_progress_local_snapshot_name.startswith(FROZEN):
            tx.workers.idle(status.worker_assignment.worker.name, {uid: now})
        else:
            tx.workers.release(uid)
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


def reverted(uid: str, target: Target | None = None, *, now: float) -> Change:
    """REVERTING → SUSPENDED as of the last external snapshot, or of `target`; the slot is free."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_REVERTING)
        tx.workers.release(uid)
        rows.unassign(actor, pb.ACTOR_STATE_SUSPENDED)
        if target is not None:
            _go_back(tx, actor, target.snapshot)
        actor.status.ClearField("crash")
        return rows.save(tx, actor, now)

    return change


def _go_back(tx: Transaction, actor: pb.Actor, target: pb.ExternalSnapshot | None) -> None:
    """Whatever of its snapshots is not that one is garbage."""
    status = actor.status
    for each in (status.external_snapshot, status.previous_snapshot):
        kept = target is not None and each.snapshot_uri == target.snapshot_uri
        if each.snapshot_uri and not kept:
            tx.garbage.add(each.snapshot_uri)
    status.ClearField("previous_snapshot")
    status.ClearField("external_snapshot")
    if target is not None:
        status.external_snapshot.CopyFrom(target)


def _new_name(actor: pb.Actor, template: pb.ActorTemplate | None) -> str:
    """Of what a pause leaves: memory on the node where the class can write it, else a frozen process
    tree of one incarnation of a worker."""
    if template is not None and template.sandbox_config.sandbox_class in _CLASSES_WITH_MEMORY:
        return uuid.uuid4().hex
    assignment = actor.status.worker_assignment
    return f"{FROZEN}{assignment.worker.name}/{assignment.worker_epoch}"
