"""Where callers connect: this process's own gRPC server, or the engine's front before it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import grpc.aio

from atenet.ateapi.front import Counted, Front, FrontSettings, grants_for
from atenet.ateapi.roles import DEFAULT_BINDINGS
from atenet.ateapi.settings import Settings
from atenet.rpc import MtlsServer, fronted_server, mtls_server

__all__ = ["Listening", "listening"]

# People's tokens name all their groups: gRPC's own limit (8 KiB) is met by ordinary ones.
_LIMITS = (("grpc.max_metadata_size", 32 * 1024), ("grpc.absolute_max_metadata_size", 64 * 1024))


class Listening(Protocol):
    @property
    def server(self) -> grpc.aio.Server:
        """Takes handlers until it is opened."""

    async def open(self) -> str:
        """Serves; the address (`host:port`) that callers connect to. Raises AteError."""

    async def count(self) -> None:
        """Tells of the calls that were answered elsewhere until now."""

    async def close(self, seconds: float) -> None:
        """No new calls; those under way have `seconds` to end."""


@contextlib.contextmanager
def listening(settings: Settings, counted: Counted) -> Iterator[Listening]:
    """`counted` is told of the calls that the front answers by itself. Raises AteError."""
    store = settings.store_location
    if not settings.fronted or not isinstance(store, Path):
        yield _Direct(
            mtls_server(
                str(settings.listen),
                credential=settings.server_credential,
                client_roots=settings.client_roots,
                options=_LIMITS,
            )
        )
        return
    with fronted_server(store.parent.absolute(), options=_LIMITS) as (server, socket):
        front = FrontSettings(
            listen=str(settings.listen),
            credential=settings.server_credential,
            client_roots=settings.client_roots,
            upstream=socket,
            store=store,
            grants=_grants(settings),
            log_level=settings.log_level,
        )
        yield _Fronted(server, Front(front, counted))


def _grants(settings: Settings) -> dict[str, list[str]]:
    """What the front may answer by itself: nothing where every call is to have its span."""
    if settings.otlp_collector_address is not None:
        return {}
    return grants_for([*DEFAULT_BINDINGS, *settings.bindings])


class _Direct:
    def __init__(self, made: MtlsServer) -> None:
        self.server = made.server
        self._address = made.address

    async def open(self) -> str:
        await self.server.start()
        return self._address

    async def count(self) -> None:
        """All its calls are answered here, and counted as they are."""

    async def close(self, seconds: float) -> None:
        await self.server.stop(seconds)


class _Fronted:
    def __init__(self, server: grpc.aio.Server, front: Front) -> None:
        self.server = server
        self._front = front

    async def open(self) -> str:
        await self.server.start()
        try:
            await self._front.start()
        except BaseException:
            await self.server.stop(0)
            raise
        return self._front.address

    async def count(self) -> None:
        await self._front.count()

    async def close(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        # The front first: what it has accepted it must still be able to bring here.
        await self._front.close(seconds)
        await self.server.stop(max(0.0, deadline - time.monotonic()))
