"""Workers as people and controllers see them."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.failure import aborted, already_exists, invalid, not_found, precondition
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.store import Transaction, WorkerRow
from atenet.ateapi.validate import fields, paging, worker
from atenet.proto import ateapi_pb2 as pb

__all__ = ["HANDLERS"]


async def _create(api: Api, request: pb.CreateWorkerRequest) -> pb.Worker:
    capacity = request.worker.status.capacity
    made = worker.for_register(pb.RegisterWorkerRequest(worker=request.worker, capacity=capacity))
    now = api.clock()
    records.created(made.metadata, now)

    def change(tx: Transaction) -> pb.Worker:
        if tx.workers.get(made.metadata.name):
            raise already_exists(f"worker {made.metadata.name}")
        tx.workers.put(made, heartbeat_at=now, lost=False)
        return made

    return await api.store.write(change)


async def _get(api: Api, request: pb.GetWorkerRequest) -> pb.Worker:
    name = _name(request.worker)
    return _found(await api.store.read(lambda tx: tx.workers.get(name)), name).worker


async def _update(api: Api, request: pb.UpdateWorkerRequest) -> pb.Worker:
    worker.for_update(request.worker)
    meta = request.worker.metadata

    def change(tx: Transaction) -> pb.Worker:
        row = _found(tx.workers.get(meta.name), meta.name)
        now = row.worker
        if (meta.uid, meta.version) != (now.metadata.uid, now.metadata.version):
            raise aborted(f"worker {meta.name} changed meanwhile; read it again")
        now.status.state = request.worker.status.state
        records.touched(now.metadata, api.clock())
        tx.workers.put(now, heartbeat_at=row.heartbeat_at, lost=row.lost)
        return now

    return await api.store.write(change)


async def _list(api: Api, request: pb.ListWorkersRequest) -> pb.ListWorkersResponse:
    if request.atespace:
        raise invalid("atespace", "must be empty: workers are in no atespace")
    page = paging.Page("workers", request)
    rows = await api.store.read(lambda tx: tx.workers.page(page.after[0], page.size + 1))
    items, token = page.cut([row.worker for row in rows], lambda w: (w.metadata.name,))
    return pb.ListWorkersResponse(workers=items, next_page_token=token)


async def _delete(api: Api, request: pb.DeleteWorkerRequest) -> pb.Worker:
    name = _name(request.worker)
    fields.options("options", request.options)

    def change(tx: Transaction) -> pb.Worker:
        row = _found(tx.workers.get(name), name)
        records.check_options(request.options, row.worker.metadata)
        if row.allocated:
            raise precondition(f"worker {name} still has {row.allocated} actors; suspend them")
        tx.workers.delete(name)
        return row.worker

    return await api.store.write(change)


async def _drain(api: Api, request: pb.DrainWorkerRequest) -> pb.Worker:
    name = _name(request.worker)

    def change(tx: Transaction) -> pb.Worker:
        row = _found(tx.workers.get(name), name)
        if row.worker.status.state != pb.WORKER_STATE_DRAINING:
            row.worker.status.state = pb.WORKER_STATE_DRAINING
            records.touched(row.worker.metadata, api.clock())
            tx.workers.put(row.worker, heartbeat_at=row.heartbeat_at, lost=row.lost)
        return row.worker

    return await api.store.write(change)


async def _assignments(
    api: Api, request: pb.ListWorkerActorAssignmentsRequest
) -> pb.ListWorkerActorAssignmentsResponse:
    name = _name(request.worker)
    page = paging.Page(f"actors of {name}", request)

    def query(tx: Transaction) -> list[pb.Actor]:
        _found(tx.workers.get(name), name)
        return tx.actors.on_worker(name, page.after[0], page.size + 1)

    items, token = page.cut(await api.store.read(query), lambda a: (a.metadata.uid,))
    return pb.ListWorkerActorAssignmentsResponse(actors=items, next_page_token=token)


def _name(ref: pb.ObjectRef) -> str:
    if ref.atespace:
        raise invalid("worker.atespace", "must be empty: workers are in no atespace")
    fields.name("worker.name", ref.name)
    return ref.name


def _found(row: WorkerRow | None, name: str) -> WorkerRow:
    if row is None:
        raise not_found(f"worker {name}")
    return row


HANDLERS: dict[str, Handler] = {
    "CreateWorker": _create,
    "GetWorker": _get,
    "UpdateWorker": _update,
    "ListWorkers": _list,
    "DeleteWorker": _delete,
    "DrainWorker": _drain,
    "ListWorkerActorAssignments": _assignments,
}
