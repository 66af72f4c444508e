"""The stored steps: each function is one transaction's change of one actor.

They re-read the actor by uid and check that it still is where the workflow left it, so two
control planes that both think it is their turn cannot both take the step.
"""

from __future__ import annotations

from collections.abc import Callable

from atenet.ateapi import records
from atenet.ateapi.failure import aborted, not_found
from atenet.ateapi.scheduler import choose
from atenet.ateapi.store import Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "begin_delete",
    "begin_suspend",
    "claim",
    "crash",
    "remove",
    "running",
    "suspended",
    "unclaim",
]

Change = Callable[[Transaction], pb.Actor]


def claim(uid: str, *, now: float, heard_after: float) -> Callable[[Transaction], pb.Actor | None]:
    """SUSPENDED or PAUSED, or RESUMING on a lost worker → RESUMING with a slot.

    None when no eligible worker has room: the actor is then SUSPENDED (or as it was).
    """

    def change(tx: Transaction) -> pb.Actor | None:
        actor = _expect(
            tx, uid, pb.ACTOR_STATE_SUSPENDED, pb.ACTOR_STATE_PAUSED, pb.ACTOR_STATE_RESUMING
        )
        template = tx.templates.get(actor.actor_template.atespace, actor.actor_template.name)
        if template is None:
            raise not_found(f"the template of {records.actor_label(actor)}")
        if actor.status.state == pb.ACTOR_STATE_RESUMING:
            tx.workers.release(uid)
        row = choose(tx.workers.with_room(heard_after), actor, template)
        if row is None:
            if actor.status.state == pb.ACTOR_STATE_RESUMING:
                _unassign(actor, pb.ACTOR_STATE_SUSPENDED)
                _save(tx, actor, now)
            return None
        tx.workers.claim(ClaimRow(uid, row.worker.metadata.name, row.worker.epoch))
        actor.status.state = pb.ACTOR_STATE_RESUMING
        actor.status.worker_assignment.CopyFrom(records.assignment_for(row.worker))
        actor.status.assigned_node = row.worker.node_name
        return _save(tx, actor, now)

    return change


def running(started: pb.Actor, *, now: float) -> Change:
    """RESUMING → RUNNING, unless the claim changed since `started` was read."""

    def change(tx: Transaction) -> pb.Actor:
        actor = _expect(tx, started.metadata.uid, pb.ACTOR_STATE_RESUMING)
        if actor.status.worker_assignment != started.status.worker_assignment:
            raise aborted(f"{records.actor_label(actor)} was placed elsewhere meanwhile")
        actor.status.state = pb.ACTOR_STATE_RUNNING
        return _save(tx, actor, now)

    return change


def unclaim(uid: str, *, now: float) -> Change:
    """RESUMING on a lost worker → SUSPENDED: resumable elsewhere from its last snapshot."""

    def change(tx: Transaction) -> pb.Actor:
        actor = _expect(tx, uid, pb.ACTOR_STATE_RESUMING)
        tx.workers.release(uid)
        _unassign(actor, pb.ACTOR_STATE_SUSPENDED)
        return _save(tx, actor, now)

    return change


def begin_suspend(uid: str, uri: str, *, now: float) -> Change:
    """RUNNING → SUSPENDING, with the name of the snapshot that will be taken."""

    def change(tx: Transaction) -> pb.Actor:
        actor = _expect(tx, uid, pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED)
        actor.status.state = pb.ACTOR_STATE_SUSPENDING
        actor.status.in_progress_snapshot_uri = uri
        return _save(tx, actor, now)

    return change


def suspended(uid: str, scope: pb.SnapshotContentScope, template_uid: str, *, now: float) -> Change:
    """SUSPENDING → SUSPENDED: the new snapshot counts, the old one is garbage, the slot is free."""

    def change(tx: Transaction) -> pb.Actor:
        actor = _expect(tx, uid, pb.ACTOR_STATE_SUSPENDING)
        status = actor.status
        if status.external_snapshot.snapshot_uri:
            tx.garbage.add(status.external_snapshot.snapshot_uri)
        status.external_snapshot.CopyFrom(
            pb.ExternalSnapshot(
                snapshot_uri=status.in_progress_snapshot_uri,
                content_scope=scope,
                actor_template_uid=template_uid,
            )
        )
        status.in_progress_snapshot_uri = ""
        tx.workers.release(uid)
        _unassign(actor, pb.ACTOR_STATE_SUSPENDED)
        return _save(tx, actor, now)

    return change


def crash(uid: str, message: str, *, now: float) -> Change:
    """RESUMING or SUSPENDING → CRASHED with the reason; the slot is free.

    The last complete snapshot stays; a half-made one is garbage.
    """

    def change(tx: Transaction) -> pb.Actor:
        actor = _expect(tx, uid, pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_SUSPENDING)
        if actor.status.in_progress_snapshot_uri:
            tx.garbage.add(actor.status.in_progress_snapshot_uri)
            actor.status.in_progress_snapshot_uri = ""
        tx.workers.release(uid)
        _unassign(actor, pb.ACTOR_STATE_CRASHED)
        actor.status.crash.message = message
        actor.status.crash.crash_time.CopyFrom(records.stamp(now))
        return _save(tx, actor, now)

    return change


def begin_delete(uid: str, options: pb.DeleteOptions, *, now: float) -> Change:
    """Any state → DELETING. The slot is held until the node has let go."""

    def change(tx: Transaction) -> pb.Actor:
        actor = _get(tx, uid)
        records.check_options(options, actor.metadata)
        actor.status.state = pb.ACTOR_STATE_DELETING
        return _save(tx, actor, now)

    return change


def remove(uid: str) -> Change:
    """DELETING → gone: record and slot; its snapshots are garbage."""

    def change(tx: Transaction) -> pb.Actor:
        actor = _expect(tx, uid, pb.ACTOR_STATE_DELETING)
        for uri in (
            actor.status.external_snapshot.snapshot_uri,
            actor.status.in_progress_snapshot_uri,
        ):
            if uri:
                tx.garbage.add(uri)
        tx.workers.release(uid)
        tx.actors.delete(uid)
        return actor

    return change


def _get(tx: Transaction, uid: str) -> pb.Actor:
    actor = tx.actors.by_uid(uid)
    if actor is None:
        raise not_found("the actor")
    return actor


def _expect(tx: Transaction, uid: str, *states: pb.ActorState) -> pb.Actor:
    actor = _get(tx, uid)
    if actor.status.state not in states:
        word = records.state_word(actor.status.state)
        raise aborted(f"{records.actor_label(actor)} became {word} meanwhile")
    return actor


def _unassign(actor: pb.Actor, state: pb.ActorState) -> None:
    actor.status.state = state
    actor.status.ClearField("worker_assignment")
    actor.status.ClearField("assigned_node")


def _save(tx: Transaction, actor: pb.Actor, now: float) -> pb.Actor:
    records.touched(actor.metadata, now)
    tx.actors.put(actor)
    return actor
