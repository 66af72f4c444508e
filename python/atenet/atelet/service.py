"""atelet.Atelet over mTLS: only the control plane may call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from atenet.atelet.fence import FenceError
from atenet.atelet.node import NodeAgent
from atenet.atelet.pausing import Paused
from atenet.atelet.saving import KeptRunningError
from atenet.atelet.snapshot import SnapshotDamagedError, SnapshotMissingError
from atenet.atelet.storing import NothingStoredError
from atenet.atelet.worker_calls import Ended, WorkerCallError
from atenet.atelet.workers import StaleWorkerError
from atenet.errors import AteError
from atenet.identity.spiffe import API_ID
from atenet.proto import ateapi_pb2, atelet_pb2, atelet_pb2_grpc
from atenet.rpc import peer_spiffe_id

__all__ = ["AteletService"]

Context = grpc.aio.ServicerContext[Any, Any]
_CODES: tuple[tuple[type[AteError], grpc.StatusCode], ...] = (
    (StaleWorkerError, grpc.StatusCode.FAILED_PRECONDITION),
    (NothingStoredError, grpc.StatusCode.NOT_FOUND),
    (SnapshotMissingError, grpc.StatusCode.DATA_LOSS),
    (SnapshotDamagedError, grpc.StatusCode.DATA_LOSS),
    (FenceError, grpc.StatusCode.UNAVAILABLE),
    (AteError, grpc.StatusCode.INVALID_ARGUMENT),
)


class AteletService(atelet_pb2_grpc.AteletServicer):
    def __init__(self, node: NodeAgent) -> None:
        self._node = node

    async def Run(self, request: atelet_pb2.RunRequest, context: Context) -> atelet_pb2.RunResponse:
        async with _answered(context):
            handle = _checked(request.handle)
            timings = await self._node.run(handle, request.template)
        return atelet_pb2.RunResponse(timings=timings)

    async def Restore(
        self, request: atelet_pb2.RestoreRequest, context: Context
    ) -> atelet_pb2.RestoreResponse:
        async with _answered(context):
            handle = _checked(request.handle)
            timings = await self._node.restore(
                handle,
                request.template,
                request.snapshot_uri,
                files_only=request.content_scope != ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL,
                local=request.local_snapshot_name,
            )
        return atelet_pb2.RestoreResponse(timings=timings)

    async def Checkpoint(
        self, request: atelet_pb2.CheckpointRequest, context: Context
    ) -> atelet_pb2.CheckpointResponse:
        async with _answered(context):
            handle = _checked(request.handle, paused=bool(request.local_snapshot_name))
            try:
                stored = await self._node.checkpoint(
                    handle,
                    request.snapshot_uri,
                    full=request.content_scope == ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL,
                    template_uid=request.template_uid,
                    if_idle_ms=request.if_idle_ms,
                    local=request.local_snapshot_name,
                )
            except KeptRunningError as e:
                return atelet_pb2.CheckpointResponse(kept_running=e.message)
        return atelet_pb2.CheckpointResponse(
            found_stopped=stored.ended is Ended.NOT_RUNNING,
            memory_lost=stored.memory_lost,
            in_use=stored.ended is Ended.IN_USE,
            content_scope=(
                ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL
                if stored.with_memory
                else ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_DATA
            ),
        )

    async def Pause(
        self, request: atelet_pb2.PauseRequest, context: Context
    ) -> atelet_pb2.PauseResponse:
        async with _answered(context):
            handle, name = _checked(request.handle), request.local_snapshot_name
            try:
                paused = await self._node.pause(
                    handle, local=name, template_uid=request.template_uid
                )
            except KeptRunningError as e:
                return atelet_pb2.PauseResponse(kept_running=e.message)
        return atelet_pb2.PauseResponse(stored=paused is Paused.STORED)

    async def Thaw(
        self, request: atelet_pb2.ThawRequest, context: Context
    ) -> atelet_pb2.ThawResponse:
        async with _answered(context):
            await self._node.thaw(_checked(request.handle))
        return atelet_pb2.ThawResponse()

    async def Terminate(
        self, request: atelet_pb2.TerminateRequest, context: Context
    ) -> atelet_pb2.TerminateResponse:
        async with _answered(context):
            name = request.local_snapshot_name
            handle = _checked(request.handle, paused=bool(name))
            await self._node.terminate(handle, local=name)
        return atelet_pb2.TerminateResponse()

    async def ForgetTemplate(
        self, request: atelet_pb2.ForgetTemplateRequest, context: Context
    ) -> atelet_pb2.ForgetTemplateResponse:
        async with _answered(context):
            await self._node.forget_template(request.template_uid)
        return atelet_pb2.ForgetTemplateResponse()

    async def LookUpWorker(
        self, request: atelet_pb2.LookUpWorkerRequest, context: Context
    ) -> atelet_pb2.LookUpWorkerResponse:
        async with _answered(context):
            alive = self._node.worker_alive(request.worker, request.worker_epoch)
        return atelet_pb2.LookUpWorkerResponse(alive=alive)


@asynccontextmanager
async def _answered(context: Context) -> AsyncIterator[None]:
    if peer_spiffe_id(context) != API_ID:
        await context.abort(
            grpc.StatusCode.PERMISSION_DENIED, "only the control plane may call the node agent"
        )
    try:
        yield
    except WorkerCallError as e:
        await context.abort(e.code, str(e))
    except AteError as e:
        code = next(code for kind, code in _CODES if isinstance(e, kind))
        await context.abort(code, str(e))
    except OSError as e:
        # A full disk, say: nothing is wrong with the actor, and it may be better next time.
        await context.abort(grpc.StatusCode.UNAVAILABLE, f"node storage: {e}")


def _checked(handle: atelet_pb2.ActorHandle, *, paused: bool = False) -> atelet_pb2.ActorHandle:
    """`paused`: it is on no worker. Raises AteError naming the missing field."""
    fields = {
        "actor.atespace": handle.actor.atespace,
        "actor.name": handle.actor.name,
        "actor_uid": handle.actor_uid,
        "worker": handle.worker,
    }
    for name, value in fields.items():
        if not value and not (paused and name == "worker"):
            raise AteError(f"handle.{name} is empty")
    return handle
