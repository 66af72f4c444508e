"""Has a worker write an actor's memory, and lets the actor go on when that, or storing it, fails."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NoReturn

import grpc

from atenet.atelet.worker_calls import (
    Ended,
    WorkerCallError,
    save_workload,
    thaw_workload,
)
from atenet.atelet.workers import KnownWorker, Workers
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds
from atenet.proto import atelet_pb2

__all__ = ["KeptRunningError", "let_go_on", "save"]

_log = logging.getLogger(__name__)


class KeptRunningError(AteError):
    """Nothing could be stored; the actor runs on as before. The message says why."""


async def save(
    workers: Workers, handle: atelet_pb2.ActorHandle, directory: Path, *, if_idle_ms: int
) -> MemoryNeeds | Ended:
    """What the memory in `directory` depends on; the actor stands still until it is ended or let go on.

    NOT_RUNNING: it had ended; LOST: its worker is gone. Raises KeptRunningError and WorkerCallError.
    """
    worker = workers.find(handle.worker, handle.worker_epoch)
    if worker is None or not worker.accepts() or workers.is_silent(worker):
        return Ended.LOST
    try:
        return await save_workload(worker, handle, directory, if_idle_ms=if_idle_ms)
    except WorkerCallError as e:
        if e.code is grpc.StatusCode.DATA_LOSS:
            raise KeptRunningError(e.message) from e
        raise


async def let_go_on(
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    why: Exception,
    *,
    where: str = "snapshot store",
) -> NoReturn:
    """Raises KeptRunningError, and WorkerCallError UNAVAILABLE when it still stands: then all of it
    may be tried again."""
    _log.warning(
        "could not store an actor: it goes on",
        extra={"actor_uid": handle.actor_uid, "error": str(why)},
    )
    try:
        await thaw_workload(worker, handle)
    except WorkerCallError as e:
        message = f"{where}: {why}; and the actor could not be let go on: {e.message}"
        raise WorkerCallError(grpc.StatusCode.UNAVAILABLE, message) from why
    raise KeptRunningError(f"{where}: {why}") from why
