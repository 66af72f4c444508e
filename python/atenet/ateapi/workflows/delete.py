"""Delete: say so, have the node let go, forget the record, sweep its snapshots."""

from __future__ import annotations

import logging

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError, not_found, precondition
from atenet.ateapi.nodes import NodeError, handle_for
from atenet.ateapi.store import WorkerRow
from atenet.ateapi.workflows import changes, decide
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import DeleteStep
from atenet.ateapi.workflows.stops import reached
from atenet.proto import ateapi_pb2 as pb

__all__ = ["delete"]

_log = logging.getLogger(__name__)
# The node has nothing of it: as good as an OK.
_GONE = frozenset({grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION})


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
        await _terminate(context, actor, row)
    reached("delete.terminated")
    gone = await context.store.write(changes.remove(uid))
    reached("delete.done")
    context.sweeper.wake()
    return gone


def _step(actor: pb.Actor, *, any_state: bool) -> DeleteStep:
    assigned = actor.status.HasField("worker_assignment")
    return decide.delete_step(actor.status.state, any_state=any_state, assigned=assigned)


async def _terminate(context: Context, actor: pb.Actor, row: WorkerRow | None) -> None:
    if row is None:
        return
    try:
        await context.nodes.terminate(row.worker.node_endpoint, handle_for(actor))
    except NodeError as e:
        if e.code in _GONE or not context.claim_good(actor, row):
            return
        _log.warning(
            "terminate refused",
            extra={"actor": records.actor_label(actor), "error": str(e)},
        )
        raise CallError(
            grpc.StatusCode.UNAVAILABLE, "the actor's node is unavailable; retry"
        ) from e
