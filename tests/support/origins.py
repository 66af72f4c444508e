"""Actors' servers: HTTP/1.1 on asyncio sockets, each answer written byte for byte by a handler."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable

from tests.support.addresses import abort, bound_socket
from tests.support.http1_message import Body, Head, read_head, read_request_body

ACTOR_PORT = 80


class Exchange:
    """One request at an actor, and the connection to answer on."""

    def __init__(
        self,
        origin: "Origin",
        head: Head,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.origin = origin
        self.head = head
        self.reader = reader
        self.writer = writer
        self.body: bytes | None = None
        self.trailers: list[tuple[str, str]] = []
        self.keep_alive = True

    @property
    def path(self) -> str:
        return self.head.target.partition("?")[0]

    async def read_body(self) -> Body:
        body = await read_request_body(self.head, self.reader)
        self.body, self.trailers = body.data, body.trailers
        return body

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int = 200, body: bytes = b"", *fields: tuple[str, str]) -> None:
        """A whole length-framed answer."""
        lines = [f"HTTP/1.1 {status} Answer", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in fields]
        await self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """Ends the connection with a TCP reset."""
        self.keep_alive = False
        abort(self.writer)


Handler = Callable[[Exchange], Awaitable[None]]


class Origin:
    """One actor's HTTP/1.1 server on port 80 of a loopback address of its own."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.address = ""
        self.port = ACTOR_PORT
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.open_connections = 0
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    @classmethod
    async def start(
        cls,
        handler: Handler,
        *,
        port: int = ACTOR_PORT,
        address: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> "Origin":
        origin = cls(handler)
        listener = bound_socket(port, address=address)
        origin.address = listener.getsockname()[0]
        origin.port = listener.getsockname()[1]
        origin._server = await asyncio.start_server(
            origin._accept, sock=listener, limit=1 << 20, ssl=tls
        )
        return origin

    @property
    def heads(self) -> list[Head]:
        return [exchange.head for exchange in self.exchanges]

    async def wait_for_requests(self, count: int, limit: float = 20.0) -> None:
        async with asyncio.timeout(limit), self._changed:
            await self._changed.wait_for(lambda: len(self.exchanges) >= count)

    async def wait_no_connections(self, limit: float = 20.0) -> None:
        async with asyncio.timeout(limit), self._changed:
            await self._changed.wait_for(lambda: self.open_connections == 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        self.connections += 1
        self.open_connections += 1
        try:
            # Only `close` cancels, and Python 3.11's streams cannot stand a cancelled task.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self.open_connections -= 1
            await self._tell()
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (head := await read_head(reader)) is not None:
            exchange = Exchange(self, head, reader, writer)
            self.exchanges.append(exchange)
            await self._tell()
            await self.handler(exchange)
            if not exchange.keep_alive:
                return

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None


async def echo(exchange: Exchange) -> None:
    """Tells what arrived: request line, fields, body, trailers, as JSON."""
    body = await exchange.read_body()
    told = {
        "start": exchange.head.start,
        "fields": exchange.head.fields,
        "body": body.data.decode("latin-1"),
        "trailers": body.trailers,
        "origin": exchange.origin.address,
    }
    await exchange.answer(200, json.dumps(told).encode(), ("content-type", "application/json"))


def answering(status: int = 200, body: bytes = b"ok", *fields: tuple[str, str]) -> Handler:
    """Reads the request whole and gives one fixed answer."""

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.answer(status, body, *fields)

    return handler


def sending(data: bytes, *, close: bool = False) -> Handler:
    """Reads the request whole and writes these bytes, a whole response or not."""

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(data)
        if close:
            exchange.keep_alive = False

    return handler


def held(gate: asyncio.Event, then: Handler) -> Handler:
    """Answers when the test opens the gate."""

    async def handler(exchange: Exchange) -> None:
        await gate.wait()
        await then(exchange)

    return handler
