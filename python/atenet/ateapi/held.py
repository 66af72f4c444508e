"""What pauses have left on nodes, against what records name: the rest is removed.

A node that was not there when an actor was reverted, deleted or given up still has its memory.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable

from atenet.ateapi.failure import CallError
from atenet.ateapi.nodes import NodeError
from atenet.ateapi.store import BusyError, Transaction
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.operations import OperationHeldError, Operations
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2 as node_pb

__all__ = ["forget", "strays"]

_log = logging.getLogger(__name__)


def strays(
    node: str, snapshots: Iterable[pb.HeldSnapshot]
) -> Callable[[Transaction], list[pb.HeldSnapshot]]:
    """Those that no record names."""
    listed = list(snapshots)

    def query(tx: Transaction) -> list[pb.HeldSnapshot]:
        return [each for each in listed if not _named(tx, node, each)]

    return query


async def forget(
    context: Context, operations: Operations, worker: pb.Worker, stray: pb.HeldSnapshot
) -> None:
    """Has the node remove it, unless a record names it by now."""
    with contextlib.suppress(CallError, BusyError, OperationHeldError):  # told again in a minute
        await operations.run(stray.actor_uid, lambda: _forget_locked(context, worker, stray))


async def _forget_locked(context: Context, worker: pb.Worker, stray: pb.HeldSnapshot) -> None:
    if await context.store.read(lambda tx: _named(tx, worker.node_name, stray)):
        return
    uid, name = stray.actor_uid, stray.snapshot_name
    handle = node_pb.ActorHandle(actor=pb.ObjectRef(atespace="unclaimed", name=uid), actor_uid=uid)
    _log.warning("a pause left what nobody names", extra={"actor_uid": uid, "snapshot": name})
    try:
        # One that cannot be read has no name.
        await context.nodes.terminate(worker.node_endpoint, handle, local=name or "unreadable")
    except NodeError as e:
        _log.info("it stays for now", extra={"actor_uid": uid, "error": str(e)})


def _named(tx: Transaction, node: str, held: pb.HeldSnapshot) -> bool:
    actor = tx.actors.by_uid(held.actor_uid)
    if actor is None or actor.status.assigned_node != node:
        return False
    status = actor.status
    names = (status.local_snapshot.snapshot_name, status.in_progress_local_snapshot_name)
    return held.snapshot_name in names if held.snapshot_name else bool(any(names))
