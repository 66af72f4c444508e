"""Whether the control plane answers: one cheap listing, shown on the status page."""

from __future__ import annotations

from typing import Any, Self

import grpc.aio

from atenet.proto import ateapi_pb2, ateapi_pb2_grpc
from atenet.router.envoy_settings import EnvoySettings
from atenet.rpc import mtls_channel

__all__ = ["ControlCheck"]


class ControlCheck:
    """An own connection: what it costs never stands in a request's way."""

    def __init__(self, settings: EnvoySettings) -> None:
        self._channel = mtls_channel(
            settings.ateapi_address,
            credential=settings.ateapi_client_cert,
            roots=settings.ateapi_ca_file,
            server_name=settings.ateapi_server_name,
        )
        # The channel stands where the generated stub expects a grpc.aio.Channel.
        stub: Any = ateapi_pb2_grpc.ControlStub
        self._control = stub(self._channel)

    async def look(self) -> str | None:
        """What is wrong, or None."""
        try:
            await self._control.ListActors(ateapi_pb2.ListActorsRequest(page_size=1), timeout=2)
        except grpc.aio.AioRpcError as error:
            return f"ListActors: {error.code().name}"
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()
