"""Ends an actor for certain: by its worker, or over its head when the worker is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import grpc

from atenet.atelet.fence import fence
from atenet.atelet.worker_calls import Ended, WorkerCallError, end_workload
from atenet.atelet.workers import KnownWorker, StaleWorkerError, Workers
from atenet.proto import atelet_pb2

__all__ = ["end_elsewhere", "give_up_start", "stop"]

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5
_UNREACHED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


async def stop(
    workers: Workers, handle: atelet_pb2.ActorHandle, *, with_grace: bool, if_idle_ms: int = 0
) -> Ended:
    """When it returns no process of the actor is left, unless it is in use (see `if_idle_ms`).

    Raises WorkerCallError when the worker lives but did not do it: calling again may succeed.
    """
    worker = workers.find(handle.worker, handle.worker_epoch)
    if worker is not None:
        ended = await _ask(workers, worker, handle, with_grace=with_grace, if_idle_ms=if_idle_ms)
        if ended is Ended.IN_USE:
            return ended
        if ended is not None:
            worker.hosted.discard(handle.actor_uid)
            return ended
    killed = await asyncio.to_thread(fence, handle.actor_uid)
    if worker is not None:
        worker.hosted.discard(handle.actor_uid)
    _log.warning(
        "ended an actor whose worker is gone",
        extra={
            "actor_uid": handle.actor_uid,
            "worker": handle.worker,
            "worker_epoch": handle.worker_epoch,
            "killed_processes": killed,
        },
    )
    return Ended.NOT_RUNNING


async def give_up_start(workers: Workers, handle: atelet_pb2.ActorHandle) -> None:
    """Tells the worker not to wait for the actor's readiness any longer; `stop` makes sure."""
    worker = workers.find(handle.worker, handle.worker_epoch)
    if worker is not None:
        with contextlib.suppress(WorkerCallError):
            await end_workload(worker, handle, with_grace=False)


async def end_elsewhere(workers: Workers, handle: atelet_pb2.ActorHandle) -> None:
    """Makes sure that no other activation of the actor uses its files.

    Raises StaleWorkerError when one does: a late call for an earlier activation must not touch
    the present one. A worker that is gone counts for nothing.
    """
    host = workers.hosting(handle.actor_uid)
    if host is None or (host.name, host.epoch) == (handle.worker, handle.worker_epoch):
        return
    if not _is_gone(workers, host):
        raise StaleWorkerError(
            f"actor {handle.actor_uid} is on worker {host.name!r} at epoch {host.epoch}, "
            f"the call names {handle.worker!r} at epoch {handle.worker_epoch}"
        )
    await asyncio.to_thread(fence, handle.actor_uid)
    host.hosted.discard(handle.actor_uid)


async def _ask(
    workers: Workers,
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    *,
    with_grace: bool,
    if_idle_ms: int,
) -> Ended | None:
    """None when the worker is gone."""
    call = asyncio.ensure_future(
        end_workload(worker, handle, with_grace=with_grace, if_idle_ms=if_idle_ms)
    )
    try:
        while not (await asyncio.wait({call}, timeout=_LOOK_SECONDS))[0]:
            # A worker that is busy still registers; one that hangs does not.
            if workers.is_silent(worker):
                return None
        return await call
    except WorkerCallError as e:
        if e.code not in _UNREACHED or not _is_gone(workers, worker):
            raise
        return None
    finally:
        call.cancel()


def _is_gone(workers: Workers, worker: KnownWorker) -> bool:
    """Dead, or silent for so long that its actors are not left waiting for it."""
    return not worker.accepts() or workers.is_silent(worker)
