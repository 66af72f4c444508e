"""A worker's end of the capture, for tests: what connects here comes out of a tunnel of one actor."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

from tests.support.addresses import abort
from tests.support.raw_http1 import RawHttp1

_CHUNK = 1 << 16


class Capture:
    """Listens for an actor's connections and carries each through a tunnel that `open_tunnel` makes.

    A reset of the tunnel is a reset of the connection; an end is an end.
    """

    def __init__(self, open_tunnel: Callable[[], Awaitable[RawHttp1]]) -> None:
        self._open_tunnel = open_tunnel
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> "Capture":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        with contextlib.suppress(asyncio.CancelledError):
            wire = await self._open_tunnel()
            await asyncio.gather(_up(reader, wire), _down(wire, writer))
        writer.close()


async def _up(reader: asyncio.StreamReader, wire: RawHttp1) -> None:
    # TLS has no half of an end here: the actor's end is told by closing the tunnel afterwards.
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            wire.writer.write(data)
            await wire.writer.drain()
        wire.writer.close()


async def _down(wire: RawHttp1, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await wire.reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.close()
    except (OSError, ssl.SSLError):
        abort(writer)
