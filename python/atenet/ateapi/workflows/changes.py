"""The stored steps: each function is one transaction's change of one actor.

They re-read the actor by uid and check that it still is where the workflow left it, so two
control planes that both think it is their turn cannot both take the step.
"""

from __future__ import annotations

from collections.abc import Callable

from atenet.ateapi import records
from atenet.ateapi.failure import aborted, not_found
from atenet.ateapi.scheduler import choose, on_node
from atenet.ateapi.store import Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.workflows import rows
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "Change",
    "begin_delete",
    "begin_suspend",
    "claim",
    "crash",
    "keep_running",
    "remove",
    "running",
    "stay_paused",
    "suspended",
    "unclaim",
]

Change = Callable[[Transaction], pb.Actor]


def claim(
    uid: str, *, now: float, heard_after: float, pack: bool = False
) -> Callable[[Transaction], pb.Actor | None]:
    """SUSPENDED, or PAUSED and kept by a node, or RESUMING on a lost worker → RESUMING with a slot,
    on that node.

    None when no eligible worker has room: the actor is then SUSPENDED or PAUSED (or as it was).
    """

    def change(tx: Transaction) -> pb.Actor | None:
        actor = rows.expect(
            tx, uid, pb.ACTOR_STATE_SUSPENDED, pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_PAUSED
        )
        kept = records.is_kept(actor)
        if actor.status.state == pb.ACTOR_STATE_PAUSED and not kept:
            raise aborted(f"{records.actor_label(actor)} became PAUSED meanwhile")
        template = tx.templates.get(actor.actor_template.atespace, actor.actor_template.name)
        if template is None:
            raise not_found(f"the template of {records.actor_label(actor)}")
        if actor.status.state == pb.ACTOR_STATE_RESUMING:
            tx.workers.release(uid)
        room = tx.workers.with_room(heard_after, pack=pack)
        row = choose(on_node(room, actor.status.assigned_node if kept else ""), actor, template)
        if row is None:
            if actor.status.state == pb.ACTOR_STATE_RESUMING:
                rows.let_rest(actor)
                rows.save(tx, actor, now)
            return None
        tx.workers.claim(
            ClaimRow(
                uid,
                row.worker.metadata.name,
                row.worker.epoch,
                cpu_milli=template.resources.cpu_milli,
                memory_bytes=template.resources.memory_bytes,
            )
        )
        actor.status.state = pb.ACTOR_STATE_RESUMING
        actor.status.worker_assignment.CopyFrom(records.assignment_for(row.worker))
        actor.status.assigned_node = row.worker.node_name
        return rows.save(tx, actor, now)

    return change


def running(started: pb.Actor, *, now: float) -> Change:
    """RESUMING → RUNNING, unless the claim changed since `started` was read."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, started.metadata.uid, pb.ACTOR_STATE_RESUMING)
        if actor.status.worker_assignment != started.status.worker_assignment:
            raise aborted(f"{records.actor_label(actor)} was placed elsewhere meanwhile")
        actor.status.state = pb.ACTOR_STATE_RUNNING
        if not actor.status.HasField("local_snapshot"):
            rows.drop_previous(tx, actor)  # the one after it has proved good
        actor.status.ClearField("local_snapshot")
        return rows.save(tx, actor, now)

    return change


def unclaim(uid: str, *, now: float) -> Change:
    """RESUMING on a lost worker → SUSPENDED: resumable elsewhere from its last snapshot; or PAUSED."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_RESUMING)
        tx.workers.release(uid)
        rows.let_rest(actor)
        return rows.save(tx, actor, now)

    return change


def begin_suspend(uid: str, uri: str, *, if_idle_ms: int = 0, now: float) -> Change:
    """RUNNING, or frozen or on the way into or out of that → SUSPENDING, with the name of the
    snapshot that will be taken.

    `if_idle_ms`: only because it is idle; see `keep_running`.
    """

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(
            tx,
            uid,
            pb.ACTOR_STATE_RUNNING,
            pb.ACTOR_STATE_PAUSING,
            pb.ACTOR_STATE_PAUSED,
            pb.ACTOR_STATE_RESUMING,
        )
        status = actor.status
        if status.state == pb.ACTOR_STATE_RESUMING and not records.is_frozen(actor):
            raise aborted(f"{records.actor_label(actor)} became RESUMING meanwhile")
        if status.state == pb.ACTOR_STATE_PAUSED:
            rows.assign_as_claimed(tx, actor)
        status.state = pb.ACTOR_STATE_SUSPENDING
        status.in_progress_snapshot_uri = uri
        status.suspend_if_idle_ms = if_idle_ms
        return rows.save(tx, actor, now)

    return change


def keep_running(uid: str, *, now: float) -> Change:
    """SUSPENDING or PAUSING → RUNNING: the node says that it is in use, or that it cannot do it,
    and has done nothing."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_SUSPENDING, pb.ACTOR_STATE_PAUSING)
        status = actor.status
        if status.in_progress_snapshot_uri:
            tx.garbage.add(status.in_progress_snapshot_uri)
            status.in_progress_snapshot_uri = ""
        status.in_progress_local_snapshot_name = ""
        status.suspend_if_idle_ms = 0
        status.state = pb.ACTOR_STATE_RUNNING
        tx.workers.idle(status.worker_assignment.worker.name, {uid: None})
        return rows.save(tx, actor, now)

    return change


def stay_paused(uid: str, *, now: float) -> Change:
    """SUSPENDING → PAUSED: what its node keeps could not be stored now."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_SUSPENDING)
        status = actor.status
        if status.in_progress_snapshot_uri:
            tx.garbage.add(status.in_progress_snapshot_uri)
            status.in_progress_snapshot_uri = ""
        status.suspend_if_idle_ms = 0
        status.state = pb.ACTOR_STATE_PAUSED
        return rows.save(tx, actor, now)

    return change


def suspended(
    uid: str,
    scope: pb.SnapshotContentScope,
    template_uid: str,
    *,
    now: float,
    heir: Callable[[Transaction], object] | None = None,
) -> Change:
    """SUSPENDING → SUSPENDED: the new snapshot counts, and the slot is free. The old one, from which the
    actor has run, stays until it has run from the new one.

    `heir`: what takes the slot in the same transaction, before anybody else sees it free.
    """

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_SUSPENDING)
        status = actor.status
        if status.HasField("external_snapshot"):
            rows.drop_previous(tx, actor)
            status.previous_snapshot.CopyFrom(status.external_snapshot)
        status.external_snapshot.CopyFrom(
            pb.ExternalSnapshot(
                snapshot_uri=status.in_progress_snapshot_uri,
                content_scope=scope,
                actor_template_uid=template_uid,
            )
        )
        status.in_progress_snapshot_uri = ""
        tx.workers.release(uid)
        rows.unassign(actor, pb.ACTOR_STATE_SUSPENDED)
        saved = rows.save(tx, actor, now)
        if heir is not None:
            heir(tx)
        return saved

    return change


def crash(uid: str, message: str, *, now: float, snapshot_unusable: bool = False) -> Change:
    """RESUMING, SUSPENDING, or PAUSED and kept → CRASHED with the reason; the slot is free.

    The last complete snapshot stays; a half-made one is garbage.
    """

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(
            tx, uid, pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_SUSPENDING, pb.ACTOR_STATE_PAUSED
        )
        if actor.status.in_progress_snapshot_uri:
            tx.garbage.add(actor.status.in_progress_snapshot_uri)
            actor.status.in_progress_snapshot_uri = ""
        tx.workers.release(uid)
        rows.unassign(actor, pb.ACTOR_STATE_CRASHED)
        actor.status.crash.message = message
        actor.status.crash.snapshot_unusable = snapshot_unusable
        actor.status.crash.crash_time.CopyFrom(records.stamp(now))
        return rows.save(tx, actor, now)

    return change


def begin_delete(uid: str, options: pb.DeleteOptions, *, now: float) -> Change:
    """Any state → DELETING. The slot is held until the node has let go."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.get(tx, uid)
        records.check_options(options, actor.metadata)
        if actor.status.state == pb.ACTOR_STATE_PAUSED:
            rows.assign_as_claimed(tx, actor)
        actor.status.state = pb.ACTOR_STATE_DELETING
        return rows.save(tx, actor, now)

    return change


def remove(uid: str) -> Change:
    """DELETING → gone: record and slot; its snapshots are garbage."""

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_DELETING)
        for uri in (
            actor.status.external_snapshot.snapshot_uri,
            actor.status.previous_snapshot.snapshot_uri,
            actor.status.in_progress_snapshot_uri,
        ):
            if uri:
                tx.garbage.add(uri)
        tx.workers.release(uid)
        tx.actors.delete(uid)
        return actor

    return change
