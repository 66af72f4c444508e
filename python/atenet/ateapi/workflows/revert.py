"""Revert: have the node forget the actor, go back to its last external snapshot, or, when that is what
it could not start from, to the last one that verifies.

One that has none goes back to its beginning: its next start is its first.
"""

from __future__ import annotations

import asyncio
import logging

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError, not_found, precondition
from atenet.ateapi.workflows import decide, frozen
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import RevertStep
from atenet.ateapi.workflows.last_good import Known, Target, last_good
from atenet.ateapi.workflows.letting_go import let_go
from atenet.ateapi.workflows.stops import reached
from atenet.proto import ateapi_pb2 as pb

__all__ = ["revert"]

_log = logging.getLogger(__name__)


async def revert(context: Context, uid: str) -> tuple[pb.Actor, str]:
    """Brings the actor to SUSPENDED without what it did since. Raises CallError.

    The second value is for people: why it is not at its newest snapshot, or "".

    The caller holds the actor's operation lock.
    """
    actor, row = await context.look(uid)
    if actor is None:
        raise not_found("the actor")
    step = decide.revert_step(actor.status.state)
    if step is RevertStep.DONE:
        return actor, ""
    if step is RevertStep.REFUSE:
        word = records.state_word(actor.status.state)
        raise precondition(f"{records.actor_label(actor)} is {word}")
    if step is RevertStep.BEGIN:
        actor = await context.store.write(frozen.begin_revert(uid, now=context.clock()))
        reached("revert.begun")
    await let_go(context, actor, row)
    reached("revert.terminated")
    target = None
    if actor.status.crash.snapshot_unusable and actor.status.HasField("external_snapshot"):
        target = await _last_good(context, actor)
    done = await context.store.write(frozen.reverted(uid, target, now=context.clock()))
    reached("revert.done")
    context.sweeper.wake()
    note = target.note if target is not None else ""
    _log.info(
        "actor reverted",
        extra={"atespace": actor.metadata.atespace, "actor": actor.metadata.name, "note": note},
    )
    return done, note


async def _last_good(context: Context, actor: pb.Actor) -> Target:
    """Raises CallError: Unavailable, and nothing is decided."""
    status = actor.status
    try:
        newest = await _known(context, status.external_snapshot)
        previous = None
        if status.HasField("previous_snapshot"):
            previous = await _known(context, status.previous_snapshot)
    except OSError as e:
        _log.warning("the snapshot store does not answer", extra={"error": str(e)})
        raise CallError(
            grpc.StatusCode.UNAVAILABLE, "the snapshot store does not answer; retry"
        ) from e
    return last_good(newest, previous)


async def _known(context: Context, snapshot: pb.ExternalSnapshot) -> Known:
    found = await asyncio.to_thread(context.snapshots.examine, snapshot.snapshot_uri)
    return Known(snapshot, found)
