"""atelet.WorkerSupport on the Unix socket: what workers ask, passed on in this node's name."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from atenet.atelet.workers import Workers
from atenet.proto import ateapi_pb2, ateapi_pb2_grpc, atelet_pb2, atelet_pb2_grpc

__all__ = ["WorkerSupport"]

_CALL_SECONDS = 4.0
_LARGEST_REQUEST = 16384
_TELL_SECONDS = 60.0
_TOLD_AT_ONCE = 500
Context = grpc.aio.ServicerContext[Any, Any]


class WorkerSupport(atelet_pb2_grpc.WorkerSupportServicer):
    """`endpoint`: where the control plane reaches this agent, host:port."""

    def __init__(
        self,
        workers: Workers,
        control: ateapi_pb2_grpc.WorkerServiceStub,
        *,
        node: str,
        endpoint: str,
        held: Callable[[], Sequence[tuple[str, str]]] = tuple,
    ) -> None:
        """`held`: uid and name of what pauses have left here; it blocks."""
        self._workers = workers
        self._control = control
        self._node = node
        self._endpoint = endpoint
        self._held = held
        self._told = float("-inf")

    async def RegisterWorker(
        self, request: atelet_pb2.RegisterWorkerRequest, context: Context
    ) -> atelet_pb2.RegisterWorkerResponse:
        worker = request.worker
        if not worker.metadata.name or not request.socket_path or worker.epoch <= 0:
            await _refuse(context, "worker.metadata.name, worker.epoch and socket_path are needed")
        hosted = set(request.hosted_actor_uids)
        if not await self._workers.registered(
            worker.metadata.name, worker.epoch, request.socket_path, hosted
        ):
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "a later incarnation of this worker is known"
            )
        worker.node_name = self._node
        worker.node_endpoint = self._endpoint
        forwarded = ateapi_pb2.RegisterWorkerRequest(
            worker=worker,
            capacity=request.capacity,
            hosted_actor_uids=request.hosted_actor_uids,
            activity=request.activity,
            held_snapshots=await self._held_now(),
        )
        answer = await _ask(context, self._control.RegisterWorker, forwarded)
        return atelet_pb2.RegisterWorkerResponse(worker=answer.worker)

    async def MintActorCertificate(
        self, request: atelet_pb2.MintActorCertificateRequest, context: Context
    ) -> atelet_pb2.MintActorCertificateResponse:
        await self._host_of(request.actor_uid, context)
        if len(request.certificate_signing_request) > _LARGEST_REQUEST:
            await _refuse(context, f"certificate_signing_request is over {_LARGEST_REQUEST} bytes")
        forwarded = ateapi_pb2.MintWorkerActorCertificateRequest(
            actor=ateapi_pb2.ObjectRef(atespace=request.actor_atespace, name=request.actor_name),
            actor_uid=request.actor_uid,
            certificate_signing_request=request.certificate_signing_request,
        )
        answer = await _ask(context, self._control.MintWorkerActorCertificate, forwarded)
        return atelet_pb2.MintActorCertificateResponse(actor_certificates=answer.actor_certificates)

    async def GetActorEgressPolicies(
        self, request: atelet_pb2.GetActorEgressPoliciesRequest, context: Context
    ) -> atelet_pb2.GetActorEgressPoliciesResponse:
        hosted = [k for k in request.known if self._workers.hosting(k.actor_uid) is not None]
        forwarded = ateapi_pb2.GetWorkerActorEgressPoliciesRequest(known=hosted)
        answer = await _ask(context, self._control.GetWorkerActorEgressPolicies, forwarded)
        return atelet_pb2.GetActorEgressPoliciesResponse(present=answer.present)

    async def RequestActorSuspend(
        self, request: atelet_pb2.RequestActorSuspendRequest, context: Context
    ) -> atelet_pb2.RequestActorSuspendResponse:
        host = await self._host_of(request.actor_uid, context)
        forwarded = ateapi_pb2.RequestActorSuspendRequest(
            worker=ateapi_pb2.ObjectRef(name=host),
            actor=request.actor,
            actor_uid=request.actor_uid,
        )
        await _ask(context, self._control.RequestActorSuspend, forwarded)
        return atelet_pb2.RequestActorSuspendResponse()

    async def _held_now(self) -> list[ateapi_pb2.HeldSnapshot]:
        """Said soon after a start, and then once a minute."""
        if time.monotonic() - self._told < _TELL_SECONDS:
            return []
        self._told = time.monotonic()
        held = list(await asyncio.to_thread(self._held))
        some = random.sample(held, min(len(held), _TOLD_AT_ONCE))
        return [ateapi_pb2.HeldSnapshot(actor_uid=uid, snapshot_name=name) for uid, name in some]

    async def _host_of(self, uid: str, context: Context) -> str:
        """The name of the worker that hosts it; nobody may ask in the name of another actor."""
        host = self._workers.hosting(uid)
        if host is None and self._workers.still_waiting:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, "this agent has just started; its workers will tell"
            )
        if host is None:
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, f"no worker of this node hosts actor {uid!r}"
            )
        return host.name


async def _ask(context: Context, method: Any, request: Any) -> Any:
    """The control plane's answer, or its refusal as our own."""
    try:
        return await method(request, timeout=_CALL_SECONDS)
    except grpc.aio.AioRpcError as e:
        await context.abort(e.code(), f"control plane: {e.details()}")


async def _refuse(context: Context, message: str) -> None:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
