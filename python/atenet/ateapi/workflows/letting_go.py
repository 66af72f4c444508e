"""The step that delete and revert share: the node ends the actor and forgets what was not stored."""

from __future__ import annotations

import logging

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError
from atenet.ateapi.nodes import NodeError, handle_for
from atenet.ateapi.store import WorkerRow
from atenet.ateapi.workflows.context import Context
from atenet.proto import ateapi_pb2 as pb

__all__ = ["let_go"]

_log = logging.getLogger(__name__)
# The node has nothing of it: as good as an OK.
_GONE = frozenset({grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION})


async def let_go(context: Context, actor: pb.Actor, row: WorkerRow | None) -> None:
    """Returns when the actor's node has nothing of it, or it is assigned nowhere, or its worker
    is lost. Raises CallError: Unavailable, and nothing is decided."""
    if records.is_kept(actor):
        await _forget_kept(context, actor)
        return
    if row is None or not actor.status.HasField("worker_assignment"):
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


async def _forget_kept(context: Context, actor: pb.Actor) -> None:
    """A node that does not answer is told later, when it says what it keeps."""
    endpoint = await context.node_endpoint(actor.status.assigned_node)
    if endpoint is None:
        return
    name = actor.status.local_snapshot.snapshot_name
    try:
        await context.nodes.terminate(endpoint, handle_for(actor), local=name)
    except NodeError as e:
        _log.warning(
            "a paused actor's memory stays on its node for now",
            extra={"actor": records.actor_label(actor), "error": str(e)},
        )
