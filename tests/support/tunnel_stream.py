"""One CONNECT stream as a scripted worker sees it."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import h2.errors
import h2.exceptions

if TYPE_CHECKING:
    from tests.support.scripted_worker import WorkerConnection

_CHUNK = 16384


class TunnelResetError(ConnectionError):
    """The router reset the tunnel."""


class TunnelStream:
    """Read and write with flow control; `headers` as the CONNECT carried them."""

    def __init__(
        self, connection: "WorkerConnection", stream_id: int, headers: dict[str, str]
    ) -> None:
        self.connection = connection
        self.id = stream_id
        self.headers = headers
        self.received = 0
        self.reset_code: int | None = None
        self._inbox: asyncio.Queue[tuple[bytes, int]] = asyncio.Queue()
        self._window = asyncio.Event()
        self._reset = asyncio.Event()
        self._ended = False

    @property
    def port(self) -> int:
        return int(self.headers[":authority"].rsplit(":", 1)[1])

    @property
    def closed(self) -> bool:
        return self._ended or self.reset_code is not None

    # -- what the connection tells

    def on_data(self, data: bytes, flow_controlled: int) -> None:
        self.received += len(data)
        self._inbox.put_nowait((data, flow_controlled))

    def on_end(self) -> None:
        self._ended = True
        self._inbox.put_nowait((b"", 0))

    def on_reset(self, code: int) -> None:
        if self.reset_code is None:
            self.reset_code = code
        self._reset.set()
        self._window.set()
        self._inbox.put_nowait((b"", -1))

    def on_window(self) -> None:
        self._window.set()

    # -- what answers do

    async def respond(
        self, status: int, headers: Sequence[tuple[str, str]] = (), *, end: bool = False
    ) -> None:
        self.connection.h2.send_headers(
            self.id, [(":status", str(status)), *headers], end_stream=end
        )
        await self.connection.drain()

    async def read(self) -> bytes:
        """Some bytes; b"" at the end; TunnelResetError after a reset."""
        data, flow_controlled = await self._inbox.get()
        if flow_controlled < 0:
            raise TunnelResetError(f"tunnel {self.id} was reset, code {self.reset_code}")
        if flow_controlled:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self.connection.h2.acknowledge_received_data(flow_controlled, self.id)
            await self.connection.drain()
        return data

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            room = min(self.connection.h2.local_flow_control_window(self.id), _CHUNK)
            if room == 0:
                self._window.clear()
                await self._window.wait()
                if self.reset_code is not None:
                    raise TunnelResetError(f"tunnel {self.id} was reset, code {self.reset_code}")
                continue
            self.connection.h2.send_data(self.id, bytes(view[:room]))
            view = view[room:]
            await self.connection.drain()

    async def end(self) -> None:
        self.connection.h2.end_stream(self.id)
        await self.connection.drain()

    async def reset(self, code: h2.errors.ErrorCodes = h2.errors.ErrorCodes.CONNECT_ERROR) -> None:
        self.connection.h2.reset_stream(self.id, code)
        await self.connection.drain()

    async def wait_reset(self, limit: float = 20.0) -> int:
        """Until the router resets the tunnel; the code that it gave."""
        async with asyncio.timeout(limit):
            await self._reset.wait()
        return self.reset_code or 0


async def relay(stream: TunnelStream, address: str) -> None:
    """Opens the tunnel and carries bytes to the actor's port and back, half-closes included."""
    reader, writer = await asyncio.open_connection(address, stream.port)
    try:
        await stream.respond(200)
        async with asyncio.TaskGroup() as both:
            both.create_task(_to_actor(stream, writer))
            both.create_task(_from_actor(stream, reader))
    except* (OSError, h2.exceptions.ProtocolError):
        with contextlib.suppress(h2.exceptions.ProtocolError):
            await stream.reset()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _to_actor(stream: TunnelStream, writer: asyncio.StreamWriter) -> None:
    while data := await stream.read():
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _from_actor(stream: TunnelStream, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(_CHUNK):
        await stream.write(data)
    await stream.end()
