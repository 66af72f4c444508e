"""Delete: say so, have the node let go, forget the record, sweep its snapshots."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.failure import not_found, precondition
from atenet.ateapi.workflows import changes, decide
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import DeleteStep
from atenet.ateapi.workflows.letting_go import let_go
from atenet.ateapi.workflows.stops import reached
from atenet.proto import ateapi_pb2 as pb

__all__ = ["delete"]


async def delete(
    context: Context, uid: str, *, any_state: bool, options: pb.DeleteOptions
) -> pb.Actor:
    """Deletes the actor from wherever that stopped; returns its last record. Raises CallError.

    The caller holds the actor's operation lock.
    """
    actor, row = await context.look(uid)
    if actor is None:
        raise not_found("the actor")
    step = _step(actor, any_state=any_state)
    if step is DeleteStep.REFUSE:
        word = records.state_word(actor.status.state)
        raise precondition(
            f"{records.actor_label(actor)} is {word}; suspend it first, or set any_state"
        )
    if step is DeleteStep.BEGIN:
        actor = await context.store.write(changes.begin_delete(uid, options, now=context.clock()))
        reached("delete.begun")
    if _step(actor, any_state=any_state) is DeleteStep.TERMINATE:
        await let_go(context, actor, row)
    reached("delete.terminated")
    gone = await context.store.write(changes.remove(uid))
    reached("delete.done")
    context.sweeper.wake()
    return gone


def _step(actor: pb.Actor, *, any_state: bool) -> DeleteStep:
    assigned = actor.status.HasField("worker_assignment") or records.is_kept(actor)
    return decide.delete_step(actor.status.state, any_state=any_state, assigned=assigned)
