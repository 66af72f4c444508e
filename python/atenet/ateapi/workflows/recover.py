"""Recover: brings an actor whose worker is gone, or whose workflow was cut, to a resting state."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.failure import CallError, not_found
from atenet.ateapi.workflows import changes
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.delete import delete
from atenet.ateapi.workflows.pause import pause
from atenet.ateapi.workflows.resume import abandon, resume
from atenet.ateapi.workflows.revert import revert
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["recover"]


async def recover(context: Context, uid: str, *, workload_gone: bool = False) -> pb.Actor:
    """Continues what the actor's state says was begun. Raises CallError.

    A RUNNING or frozen actor on a lost worker, or whose worker no longer hosts it
    (`workload_gone`), is suspended from what is on its node's disk, or CRASHED if its memory was to be
    kept. A RESUMING one goes on where it is, or back to
    SUSPENDED if its worker is lost. The caller holds the actor's operation lock.
    """
    actor, row = await context.look(uid)
    if actor is None:
        raise not_found("the actor")
    state = actor.status.state
    good = context.claim_good(actor, row)
    if state == pb.ACTOR_STATE_SUSPENDING:
        return await _suspended(context, uid, actor.status.suspend_if_idle_ms)
    resting = state == pb.ACTOR_STATE_PAUSED and records.is_kept(actor)
    hosted = state in (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED) and not resting
    if hosted and (workload_gone or not good):
        return await _suspended(context, uid)
    if state == pb.ACTOR_STATE_PAUSING:
        return await pause(context, uid)
    if state == pb.ACTOR_STATE_REVERTING:
        return (await revert(context, uid))[0]
    if state == pb.ACTOR_STATE_DELETING:
        return await delete(context, uid, any_state=True, options=pb.DeleteOptions())
    if state == pb.ACTOR_STATE_RESUMING and good:
        return (await resume(context, uid))[0]
    if state == pb.ACTOR_STATE_RESUMING and records.is_frozen(actor):
        return await suspend(context, uid)
    if state == pb.ACTOR_STATE_RESUMING:
        await abandon(context, actor, row)
        return await context.store.write(changes.unclaim(uid, now=context.clock()))
    return actor


async def _suspended(context: Context, uid: str, if_idle_ms: int = 0) -> pb.Actor:
    """Or CRASHED, which is a resting state too."""
    try:
        return await suspend(context, uid, if_idle_ms=if_idle_ms)
    except CallError:
        actor, _ = await context.look(uid)
        if actor is None or actor.status.state != pb.ACTOR_STATE_CRASHED:
            raise
        return actor
