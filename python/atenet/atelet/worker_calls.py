"""Calls to the node's workers, with their failures as this package's errors."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from atenet.atelet.workers import KnownWorker
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds, Runtime
from atenet.proto import ateapi_pb2, atelet_pb2, ateworker_pb2

__all__ = [
    "Ended",
    "Hosted",
    "WorkerCallError",
    "end_workload",
    "hosted",
    "pause_workload",
    "run_workload",
    "save_workload",
    "thaw_workload",
]

_LIST_SECONDS = 5.0
# What a start may take besides waiting for its probes.
_START_SECONDS = 30.0
# A checkpoint waits for the worker's grace, which this agent does not know.
_END_SECONDS = 60.0
_THAW_SECONDS = 15.0
# As long as runsc may take to write or read it.
_MEMORY_SECONDS = 300.0
_GONE = "exited"


class WorkerCallError(AteError):
    """The worker refused or could not be reached; `code` is what it, or gRPC, answered."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Hosted(Enum):
    """What of an actor lives on a worker."""

    NOTHING = "nothing"
    ACTOR = "actor"
    GOLDEN = "golden"  # a first start of its template, cut short


async def hosted(worker: KnownWorker, uid: str) -> Hosted:
    """Raises WorkerCallError."""
    request = ateworker_pb2.ListWorkloadsRequest()
    answer = await _call(worker, worker.stub().ListWorkloads, request, _LIST_SECONDS)
    for workload in answer.workloads:
        if workload.actor_uid == uid and workload.state != _GONE:
            return Hosted.GOLDEN if workload.state == Hosted.GOLDEN.value else Hosted.ACTOR
    return Hosted.NOTHING


async def run_workload(
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    template: ateapi_pb2.ActorTemplate,
    directory: Path,
    gateway: str | None,
    memory: ateworker_pb2.Memory | None = None,
    *,
    golden: bool = False,
) -> atelet_pb2.StartTimings:
    """`gateway`: the egress gateway's address, if there is one; `memory`: to go on from. Raises
    WorkerCallError."""
    request = ateworker_pb2.RunWorkloadRequest(
        actor=handle.actor,
        actor_uid=handle.actor_uid,
        template=template,
        actor_dir=str(directory),
        egress_gateway=None if gateway is None else ateworker_pb2.EgressGateway(address=gateway),
        memory=memory,
        golden=golden,
    )
    probes = max((c.wakeup_probe.timeout_seconds for c in template.containers), default=0)
    seconds = _START_SECONDS + probes + (0 if memory is None else _MEMORY_SECONDS)
    answer = await _call(worker, worker.stub().RunWorkload, request, seconds)
    timings: atelet_pb2.StartTimings = answer.timings
    return timings


class Ended(Enum):
    """What became of a workload that was to end."""

    STOPPED = "stopped"  # it ran until now
    NOT_RUNNING = "not running"  # it had ended, or was not there
    LOST = "lost"  # its worker is gone, and its memory with it
    IN_USE = "in use"  # it was to end only if idle: it runs on


async def end_workload(
    worker: KnownWorker, handle: atelet_pb2.ActorHandle, *, with_grace: bool, if_idle_ms: int = 0
) -> Ended:
    """`if_idle_ms`: only if nobody has used it for so long. Raises WorkerCallError."""
    named: dict[str, Any] = {"actor": handle.actor, "actor_uid": handle.actor_uid}
    if not with_grace:
        end = ateworker_pb2.TerminateWorkloadRequest(**named)
        await _call(worker, worker.stub().TerminateWorkload, end, _END_SECONDS)
        return Ended.STOPPED
    request = ateworker_pb2.CheckpointWorkloadRequest(**named, if_idle_ms=if_idle_ms)
    answer = await _checkpoint(worker, request, _END_SECONDS)
    if isinstance(answer, Ended):
        return answer
    return Ended.NOT_RUNNING if answer.found_stopped else Ended.STOPPED


async def save_workload(
    worker: KnownWorker, handle: atelet_pb2.ActorHandle, directory: Path, *, if_idle_ms: int = 0
) -> MemoryNeeds | Ended:
    """What the memory depends on that it wrote; the actor stands still. Raises WorkerCallError:
    DATA_LOSS when it could not be written and the actor runs on."""
    request = ateworker_pb2.CheckpointWorkloadRequest(
        actor=handle.actor,
        actor_uid=handle.actor_uid,
        if_idle_ms=if_idle_ms,
        content_scope=ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL,
        memory_dir=str(directory),
    )
    answer = await _checkpoint(worker, request, _END_SECONDS + _MEMORY_SECONDS)
    if isinstance(answer, Ended):
        return answer
    if not answer.HasField("memory"):
        return Ended.NOT_RUNNING
    found = answer.memory
    runtime = Runtime(found.runtime_version, found.machine, tuple(found.cpu_features))
    return MemoryNeeds(runtime, dict(found.roots))


async def _checkpoint(
    worker: KnownWorker, request: ateworker_pb2.CheckpointWorkloadRequest, seconds: float
) -> ateworker_pb2.CheckpointWorkloadResponse | Ended:
    """An `Ended` where nothing happened. Raises WorkerCallError."""
    try:
        answer = await _call(worker, worker.stub().CheckpointWorkload, request, seconds)
    except WorkerCallError as e:
        if e.code is grpc.StatusCode.NOT_FOUND:
            return Ended.NOT_RUNNING
        raise
    return Ended.IN_USE if answer.in_use else answer


async def pause_workload(worker: KnownWorker, handle: atelet_pb2.ActorHandle) -> None:
    """Raises WorkerCallError: Unimplemented where it cannot be frozen."""
    request = ateworker_pb2.PauseWorkloadRequest(actor=handle.actor, actor_uid=handle.actor_uid)
    await _call(worker, worker.stub().PauseWorkload, request, _END_SECONDS)


async def thaw_workload(worker: KnownWorker, handle: atelet_pb2.ActorHandle) -> None:
    """Raises WorkerCallError."""
    request = ateworker_pb2.ThawWorkloadRequest(actor=handle.actor, actor_uid=handle.actor_uid)
    await _call(worker, worker.stub().ThawWorkload, request, _THAW_SECONDS)


async def _call(worker: KnownWorker, method: Any, request: Any, seconds: float) -> Any:
    try:
        return await method(request, timeout=seconds)
    except grpc.aio.AioRpcError as e:
        raise WorkerCallError(e.code(), f"worker {worker.name!r}: {e.details()}") from e
