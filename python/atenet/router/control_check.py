"""Whether the control plane answers: one cheap call, shown on the status page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Self

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from atenet.proto import ateapi_pb2, ateapi_pb2_grpc
from atenet.router.envoy_settings import EnvoySettings
from atenet.rpc import mtls_channel

__all__ = ["Ask", "ControlCheck", "health", "list_one"]

_LIMIT_SECONDS = 2

# One call over this channel; what is wrong, or None. A channel stands where the generated stubs
# expect a grpc.aio.Channel.
Ask = Callable[[Any], Awaitable[str | None]]


async def list_one(channel: Any) -> str | None:
    """What a router may ask."""
    stub: Any = ateapi_pb2_grpc.ControlStub
    asked = ateapi_pb2.ListActorsRequest(page_size=1)
    return await _failure("ListActors", stub(channel).ListActors(asked, timeout=_LIMIT_SECONDS))


async def health(channel: Any) -> str | None:
    """What everybody may ask who has a role; an egress gateway may list nothing."""
    stub: Any = health_pb2_grpc.HealthStub
    asked = health_pb2.HealthCheckRequest()
    return await _failure("Health/Check", stub(channel).Check(asked, timeout=_LIMIT_SECONDS))


async def _failure(name: str, call: Awaitable[Any]) -> str | None:
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return f"{name}: {error.code().name}"
    serving = getattr(answer, "status", health_pb2.HealthCheckResponse.SERVING)
    word: str = health_pb2.HealthCheckResponse.ServingStatus.Name(serving)
    return None if word == "SERVING" else f"{name}: {word}"


class ControlCheck:
    """An own connection: what it costs never stands in a request's way."""

    def __init__(self, settings: EnvoySettings, ask: Ask) -> None:
        self._channel = mtls_channel(
            settings.ateapi_address,
            credential=settings.ateapi_client_cert,
            roots=settings.ateapi_ca_file,
            server_name=settings.ateapi_server_name,
        )
        self._ask = ask

    async def look(self) -> str | None:
        """What is wrong, or None."""
        return await self._ask(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()
