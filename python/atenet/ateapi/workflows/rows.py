"""What the stored steps share: re-reading the actor, checking where it is, writing it back."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.failure import aborted, not_found
from atenet.ateapi.store import Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.proto import ateapi_pb2 as pb

__all__ = ["assign_as_claimed", "drop_previous", "expect", "get", "let_rest", "save", "unassign"]


def get(tx: Transaction, uid: str) -> pb.Actor:
    """Raises CallError when it is gone."""
    actor = tx.actors.by_uid(uid)
    if actor is None:
        raise not_found("the actor")
    return actor


def expect(tx: Transaction, uid: str, *states: pb.ActorState) -> pb.Actor:
    """The actor, in one of these states. Raises CallError when another control plane moved it."""
    actor = get(tx, uid)
    if actor.status.state not in states:
        word = records.state_word(actor.status.state)
        raise aborted(f"{records.actor_label(actor)} became {word} meanwhile")
    return actor


def unassign(actor: pb.Actor, state: pb.ActorState) -> None:
    """It is nowhere now: neither on a worker nor, as memory, on a node."""
    status = actor.status
    status.state = state
    for field in (
        "worker_assignment",
        "assigned_node",
        "local_snapshot",
        "in_progress_local_snapshot_name",
        "suspend_if_idle_ms",
    ):
        status.ClearField(field)


def drop_previous(tx: Transaction, actor: pb.Actor) -> None:
    if actor.status.previous_snapshot.snapshot_uri:
        tx.garbage.add(actor.status.previous_snapshot.snapshot_uri)
    actor.status.ClearField("previous_snapshot")


def let_rest(actor: pb.Actor) -> None:
    """A start that is given up: back to where its memory is, a node or the store."""
    if records.is_kept(actor):
        actor.status.state = pb.ACTOR_STATE_PAUSED
        actor.status.ClearField("worker_assignment")
    else:
        unassign(actor, pb.ACTOR_STATE_SUSPENDED)


def assign_as_claimed(tx: Transaction, actor: pb.Actor) -> ClaimRow | None:
    """Fills in the assignment of a PAUSED actor, whose record names none, from the slot it holds.

    None, and nothing filled in, when it holds none.
    """
    claim = tx.workers.claim_of(actor.metadata.uid)
    if claim is None:
        return None
    row = tx.workers.get(claim.worker)
    if row is not None and row.worker.epoch == claim.worker_epoch:
        assignment = records.assignment_for(row.worker)
    else:
        assignment = pb.WorkerAssignment(
            worker=pb.ObjectRef(name=claim.worker),
            node_name=actor.status.assigned_node,
            worker_epoch=claim.worker_epoch,
        )
    actor.status.worker_assignment.CopyFrom(assignment)
    return claim


def save(tx: Transaction, actor: pb.Actor, now: float) -> pb.Actor:
    records.touched(actor.metadata, now)
    tx.actors.put(actor)
    return actor
