"""Revert: have the node forget the actor, go back to its last external snapshot.

One that has none goes back to its beginning: its next start is its first.
"""

from __future__ import annotations

import logging

from atenet.ateapi import records
from atenet.ateapi.failure import not_found, precondition
from atenet.ateapi.workflows import decide, frozen
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import RevertStep
from atenet.ateapi.workflows.letting_go import let_go
from atenet.ateapi.workflows.stops import reached
from atenet.proto import ateapi_pb2 as pb

__all__ = ["revert"]

_log = logging.getLogger(__name__)


async def revert(context: Context, uid: str) -> pb.Actor:
    """Brings the actor to SUSPENDED without what it did since. Raises CallError.

    The caller holds the actor's operation lock.
    """
    actor, row = await context.look(uid)
    if actor is None:
        raise not_found("the actor")
    step = decide.revert_step(actor.status.state)
    if step is RevertStep.DONE:
        return actor
    if step is RevertStep.REFUSE:
        word = records.state_word(actor.status.state)
        raise precondition(f"{records.actor_label(actor)} is {word}")
    if step is RevertStep.BEGIN:
        actor = await context.store.write(frozen.begin_revert(uid, now=context.clock()))
        reached("revert.begun")
    await let_go(context, actor, row)
    reached("revert.terminated")
    done = await context.store.write(frozen.reverted(uid, now=context.clock()))
    reached("revert.done")
    _log.info(
        "actor reverted",
        extra={"atespace": actor.metadata.atespace, "actor": actor.metadata.name},
    )
    return done
