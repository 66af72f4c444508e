"""The stored step of an actor whose memory went with its worker; see `changes` for how it is meant."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.store import Transaction
from atenet.ateapi.workflows import rows
from atenet.ateapi.workflows.changes import Change
from atenet.proto import ateapi_pb2 as pb

__all__ = ["memory_lost"]

_LOST = "its worker was lost, and its memory with it"


def memory_lost(uid: str, *, now: float) -> Change:
    """SUSPENDING → CRASHED; the slot is free.

    Its last snapshot, memory and files of one moment, is what a revert goes back to. What its node has
    stored are files of a later moment, which belong to memory that is no more: they count only where
    nothing was ever stored.
    """

    def change(tx: Transaction) -> pb.Actor:
        actor = rows.expect(tx, uid, pb.ACTOR_STATE_SUSPENDING)
        status = actor.status
        message = f"{_LOST}; a revert goes back to its last snapshot"
        if status.HasField("external_snapshot"):
            tx.garbage.add(status.in_progress_snapshot_uri)
        else:
            status.external_snapshot.snapshot_uri = status.in_progress_snapshot_uri
            status.external_snapshot.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_DATA
            message = (
                f"{_LOST}; it was never stored, so a revert goes back to the files that it left"
            )
        status.in_progress_snapshot_uri = ""
        tx.workers.release(uid)
        rows.unassign(actor, pb.ACTOR_STATE_CRASHED)
        status.crash.CopyFrom(pb.ActorCrash(message=message, crash_time=records.stamp(now)))
        return rows.save(tx, actor, now)

    return change
