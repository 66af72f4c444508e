"""WorkerService: what node agents say on behalf of their workers."""

from __future__ import annotations

import grpc

from atenet.ateapi import audit, callers, records
from atenet.ateapi.failure import CallError, aborted, invalid, not_found, precondition
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.store import Transaction, WorkerRow
from atenet.ateapi.validate import fields, worker
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["HANDLERS"]


async def _register(api: Api, request: pb.RegisterWorkerRequest) -> pb.RegisterWorkerResponse:
    """Registration, and with the same epoch and content again: heartbeat."""
    made = worker.for_register(request)
    _own(made.node_name, f"worker {made.metadata.name}")
    now = api.clock()
    subject, target = callers.current().subject, audit.target_of(request)
    news_of = audit.Pending(subject, "WorkerService/RegisterWorker", target, "")

    def change(tx: Transaction) -> tuple[pb.Worker, bool]:
        row = tx.workers.get(made.metadata.name)
        if row is None:
            records.created(made.metadata, now)
            tx.workers.put(made, heartbeat_at=now, lost=False)
            tx.audit.append(news_of.entry_for(made.metadata.uid, now))
            return made, True
        _may_register(made, row, api.context.heard_after)
        merged, news = _merged(made, row, now)
        if news:
            tx.workers.put(merged, heartbeat_at=now, lost=False)
        else:
            tx.workers.heartbeat(made.metadata.name, now)
        new_incarnation = merged.epoch != row.worker.epoch
        if new_incarnation:
            tx.audit.append(news_of.entry_for(merged.metadata.uid, now))
        return merged, new_incarnation

    stored, new_incarnation = await api.store.write(change)
    if new_incarnation:
        api.watch.incarnation(stored.metadata.name)
    else:
        await api.watch.hosted(
            stored,
            set(request.hosted_actor_uids),
            stopping=request.worker.status.state == pb.WORKER_STATE_DRAINING,
        )
        await api.watch.retirement.heard(stored, request.activity)
    if request.held_snapshots:
        await api.watch.held(stored, request.held_snapshots)
    return pb.RegisterWorkerResponse(worker=stored)


async def _request_suspend(
    api: Api, request: pb.RequestActorSuspendRequest
) -> pb.RequestActorSuspendResponse:
    """A worker asks for its actor to be suspended, e.g. because it drains."""
    fields.name("worker.name", request.worker.name)
    atespace, name = fields.reference("actor", request.actor)
    if not request.actor_uid:
        raise invalid("actor_uid", "is required")
    found = await api.store.read(lambda tx: tx.actors.get(atespace, name))
    if found is None:
        raise not_found(f"actor {atespace}/{name}")
    if found.metadata.uid != request.actor_uid:
        raise aborted(f"{records.actor_label(found)} has another uid")
    if found.status.worker_assignment.worker.name != request.worker.name:
        raise precondition(f"{records.actor_label(found)} is not on worker {request.worker.name}")
    _own(found.status.worker_assignment.node_name, records.actor_label(found))
    uid = found.metadata.uid
    done = await api.operations.run(uid, lambda: suspend(api.context, uid))
    return pb.RequestActorSuspendResponse(actor=done)


def _own(node: str, what: str) -> None:
    """PermissionDenied unless it is on the calling agent's node."""
    own = callers.own_node()
    if node != own:
        raise CallError(
            grpc.StatusCode.PERMISSION_DENIED, f"{what} is not on node {own}, the caller's own"
        )


def _may_register(made: pb.Worker, row: WorkerRow, heard_after: float) -> None:
    old = row.worker
    if made.epoch < old.epoch:
        raise precondition(f"worker {made.metadata.name} has restarted since epoch {made.epoch}")
    if made.node_name == old.node_name:
        return
    # Actors that are still claimed there are recovered from that node's disk: no other node's
    # agent may answer for them.
    if row.allocated or (not row.lost and row.heartbeat_at > heard_after):
        raise CallError(
            grpc.StatusCode.ALREADY_EXISTS,
            f"a worker {made.metadata.name} is on node {old.node_name}, alive or with actors",
        )


def _merged(made: pb.Worker, row: WorkerRow, now: float) -> tuple[pb.Worker, bool]:
    """The stored record with what was registered; whether anything is new.

    A drain that an operator asked for lasts as long as the incarnation that it was asked of.
    """
    merged = pb.Worker()
    merged.CopyFrom(made)
    merged.metadata.CopyFrom(row.worker.metadata)
    merged.status.allocated.CopyFrom(row.worker.status.allocated)
    if made.epoch == row.worker.epoch and row.worker.status.state == pb.WORKER_STATE_DRAINING:
        merged.status.state = pb.WORKER_STATE_DRAINING
    if merged == row.worker:
        return merged, False
    records.touched(merged.metadata, now)
    return merged, True


HANDLERS: dict[str, Handler] = {
    "RegisterWorker": _register,
    "RequestActorSuspend": _request_suspend,
}
