"""ateworker.Worker on the Unix socket: requests in, gRPC statuses out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from atenet.errors import AteError
from atenet.gvisor import Runtime
from atenet.proto import ateapi_pb2, ateworker_pb2, ateworker_pb2_grpc
from atenet.worker.egress import EgressUnavailableError
from atenet.worker.ingress import Incarnation
from atenet.worker.sandbox import (
    FreezeUnavailableError,
    InvalidTemplateError,
    LimitsUnavailableError,
    MemoryNotSavedError,
    MemoryUnusableError,
    NotNowError,
)
from atenet.worker.supervisor import (
    Checkpoint,
    DrainingError,
    FullError,
    Memory,
    NotHostedError,
    Supervisor,
)
from atenet.worker.workload import StartAbortedError

__all__ = ["WorkerService"]

# Everything else means that this actor cannot run: INTERNAL.
_CODES: tuple[tuple[type[AteError], grpc.StatusCode], ...] = (
    (InvalidTemplateError, grpc.StatusCode.INVALID_ARGUMENT),
    (LimitsUnavailableError, grpc.StatusCode.INVALID_ARGUMENT),
    (FreezeUnavailableError, grpc.StatusCode.UNIMPLEMENTED),
    (FullError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (NotHostedError, grpc.StatusCode.NOT_FOUND),
    (DrainingError, grpc.StatusCode.UNAVAILABLE),
    (EgressUnavailableError, grpc.StatusCode.UNAVAILABLE),
    (StartAbortedError, grpc.StatusCode.UNAVAILABLE),
    (NotNowError, grpc.StatusCode.UNAVAILABLE),
    (MemoryNotSavedError, grpc.StatusCode.DATA_LOSS),
    (MemoryUnusableError, grpc.StatusCode.DATA_LOSS),
)
Context = grpc.aio.ServicerContext[Any, Any]


class WorkerService(ateworker_pb2_grpc.WorkerServicer):
    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def RunWorkload(
        self, request: ateworker_pb2.RunWorkloadRequest, context: Context
    ) -> ateworker_pb2.RunWorkloadResponse:
        async with _answered(context):
            actor = _incarnation(request.actor, request.actor_uid)
            directory = _absolute("actor_dir", request.actor_dir)
            memory = _memory(request.memory) if request.HasField("memory") else None
            timings = await self._supervisor.run(
                actor,
                request.template,
                directory,
                memory,
                golden=request.golden,
                gateway=request.egress_gateway.address or None,
            )
        return ateworker_pb2.RunWorkloadResponse(timings=timings)

    async def CheckpointWorkload(
        self, request: ateworker_pb2.CheckpointWorkloadRequest, context: Context
    ) -> ateworker_pb2.CheckpointWorkloadResponse:
        async with _answered(context):
            actor = _incarnation(request.actor, request.actor_uid)
            full = request.content_scope == ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL
            done = await self._supervisor.checkpoint(
                actor,
                if_idle=request.if_idle_ms / 1000,
                memory=_absolute("memory_dir", request.memory_dir) if full else None,
            )
        answer = ateworker_pb2.CheckpointWorkloadResponse(
            found_stopped=done is Checkpoint.FOUND_STOPPED, in_use=done is Checkpoint.IN_USE
        )
        if done is Checkpoint.SAVED:
            answer.memory.CopyFrom(self._described(request.memory_dir, actor))
        return answer

    def _described(self, directory: str, actor: Incarnation) -> ateworker_pb2.Memory:
        runtime = self._supervisor.runtime
        return ateworker_pb2.Memory(
            directory=directory,
            runtime_version=runtime.version if runtime else "",
            machine=runtime.machine if runtime else "",
            cpu_features=runtime.features if runtime else (),
            roots=self._supervisor.roots(actor),
        )

    async def PauseWorkload(
        self, request: ateworker_pb2.PauseWorkloadRequest, context: Context
    ) -> ateworker_pb2.PauseWorkloadResponse:
        async with _answered(context):
            await self._supervisor.pause(_incarnation(request.actor, request.actor_uid))
        return ateworker_pb2.PauseWorkloadResponse()

    async def ThawWorkload(
        self, request: ateworker_pb2.ThawWorkloadRequest, context: Context
    ) -> ateworker_pb2.ThawWorkloadResponse:
        async with _answered(context):
            await self._supervisor.thaw(_incarnation(request.actor, request.actor_uid))
        return ateworker_pb2.ThawWorkloadResponse()

    async def TerminateWorkload(
        self, request: ateworker_pb2.TerminateWorkloadRequest, context: Context
    ) -> ateworker_pb2.TerminateWorkloadResponse:
        async with _answered(context):
            await self._supervisor.terminate(_incarnation(request.actor, request.actor_uid))
        return ateworker_pb2.TerminateWorkloadResponse()

    async def ListWorkloads(
        self, _: ateworker_pb2.ListWorkloadsRequest, context: Context
    ) -> ateworker_pb2.ListWorkloadsResponse:
        del context
        return ateworker_pb2.ListWorkloadsResponse(
            workloads=[
                ateworker_pb2.Workload(
                    actor=ateapi_pb2.ObjectRef(atespace=w.actor.atespace, name=w.actor.name),
                    actor_uid=w.actor.uid,
                    state="golden" if w.golden else w.state.value,
                )
                for w in self._supervisor.workloads()
            ]
        )


@asynccontextmanager
async def _answered(context: Context) -> AsyncIterator[None]:
    try:
        yield
    except AteError as e:
        code = next((c for kind, c in _CODES if isinstance(e, kind)), grpc.StatusCode.INTERNAL)
        await context.abort(code, str(e))


def _absolute(field: str, given: str) -> Path:
    path = Path(given)
    if not path.is_absolute():
        raise InvalidTemplateError(f"{field} {given!r} is not absolute")
    return path


def _memory(given: ateworker_pb2.Memory) -> Memory:
    return Memory(
        _absolute("memory.directory", given.directory),
        Runtime(given.runtime_version, given.machine, tuple(given.cpu_features)),
        roots=dict(given.roots) or None,
        newest=given.newest,
    )


def _incarnation(actor: ateapi_pb2.ObjectRef, uid: str) -> Incarnation:
    for field, value in (("atespace", actor.atespace), ("name", actor.name), ("uid", uid)):
        if not value:
            raise InvalidTemplateError(f"actor {field} is empty")
    return Incarnation(actor.atespace, actor.name, uid)
