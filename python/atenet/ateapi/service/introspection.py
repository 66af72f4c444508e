"""Health and reflection, for those whom the table of roles lets in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer

from atenet.ateapi.callers import Access
from atenet.ateapi.failure import CallError

__all__ = ["Health", "Reflection"]

Context = grpc.aio.ServicerContext[Any, Any]
_HEALTH = "/grpc.health.v1.Health"
_REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
_Answer: Any = health_pb2.HealthCheckResponse


class Health:
    """grpc.health.v1.Health: the whole process (the empty name) and each service stand together.

    Ours, since the library's has no List and its Watch never ends: one watcher would then hold
    up the drain for as long as it may last.
    """

    def __init__(self, access: Access, services: Sequence[str]) -> None:
        self._access = access
        self._names = ("", *services)
        self._status = _Answer.NOT_SERVING
        self._changed = asyncio.Event()
        self._closing = False

    @property
    def is_serving(self) -> bool:
        return bool(self._status == _Answer.SERVING)

    def serving(self) -> None:
        self._set(_Answer.SERVING)

    def drain(self) -> None:
        """Not serving from now on; watchers are told so, and their streams end."""
        self._closing = True
        self._set(_Answer.NOT_SERVING)

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> Any:
        await _admit(self._access, context, f"{_HEALTH}/Check")
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return _Answer(status=self._status)

    async def List(
        self, request: health_pb2.HealthListRequest, context: Context
    ) -> health_pb2.HealthListResponse:
        await _admit(self._access, context, f"{_HEALTH}/List")
        statuses = {name: _Answer(status=self._status) for name in self._names}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[Any]:
        await _admit(self._access, context, f"{_HEALTH}/Watch")
        last = None
        while True:
            changed = self._changed
            known = request.service in self._names
            status = self._status if known else _Answer.SERVICE_UNKNOWN
            if status != last:
                yield _Answer(status=status)
                last = status
                continue  # it may have changed while this was on its way
            if self._closing:
                return
            await changed.wait()

    def _set(self, status: int) -> None:
        self._status = status
        self._changed.set()
        self._changed = asyncio.Event()


class Reflection:
    """grpc.reflection.v1alpha.ServerReflection of `services`."""

    def __init__(self, access: Access, services: Sequence[str]) -> None:
        self._access = access
        self._inner = ReflectionServicer(services)

    async def ServerReflectionInfo(
        self, requests: AsyncIterator[Any], context: Context
    ) -> AsyncIterator[Any]:
        await _admit(self._access, context, _REFLECTION)
        async for answer in self._inner.ServerReflectionInfo(requests, context):
            yield answer


async def _admit(access: Access, context: Context, path: str) -> None:
    try:
        await access.admit(context, path)
    except CallError as e:
        await context.abort(e.code, e.message)
