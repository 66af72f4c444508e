"""A minter as it runs: a process of its own, asked over its socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc.aio
import pytest_asyncio
from atenet.identity.authority import Authority
from atenet.router.envoy_api import message_class

from tests.support.router_process import RouterProcess, program
from tests.unit.sdsmint.authorities import bundle, write

METHOD = "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets"
TYPE = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
REQUEST = message_class("envoy.service.discovery.v3.DeltaDiscoveryRequest")
RESPONSE = message_class("envoy.service.discovery.v3.DeltaDiscoveryResponse")


class Asker:
    """One stream of an Envoy."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def ask(self, *names: str, **more: Any) -> Any:
        await self.send(*names, **more)
        return await self.told()

    async def send(self, *names: str, **more: Any) -> None:
        await self.call.write(REQUEST(type_url=TYPE, resource_names_subscribe=names, **more))

    async def told(self) -> Any:
        async with asyncio.timeout(10):
            return await self.call.read()


class Mint:
    """A running minter."""

    def __init__(
        self, process: RouterProcess, socket: Path, pool: Path, authority: Authority
    ) -> None:
        self.process = process
        self.socket = socket
        self.pool = pool
        self.authority = authority
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}")

    def stream(self) -> Asker:
        method = self._channel.stream_stream(
            METHOD,
            request_serializer=REQUEST.SerializeToString,
            response_deserializer=RESPONSE.FromString,
        )
        return Asker(method())

    async def close(self) -> None:
        await self._channel.close()
        await self.process.stop()


Start = Callable[..., Awaitable[Mint]]


@pytest_asyncio.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a minter; `flags` change its command line."""
    async with AsyncExitStack() as stack:

        async def begin(**flags: object) -> Mint:
            authority = Authority.create("interception")
            pool, socket = write(tmp_path / "pool.pem", bundle(authority)), tmp_path / "sds.sock"
            given = {"--uds-path": socket, "--ca-pool-path": pool}
            given |= {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
            (tmp_path / "ready.json").unlink(missing_ok=True)
            words = [str(word) for pair in given.items() for word in pair]
            process = await RouterProcess.start([program("atenet"), "sdsmint", *words], tmp_path)
            mint = Mint(process, socket, pool, authority)
            stack.push_async_callback(mint.close)
            return mint

        yield begin
