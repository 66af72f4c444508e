"""A raw HTTP/1.1 client: what the test writes is what goes out."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.support.addresses import abort
from tests.support.endpoint import Endpoint
from tests.support.http1_message import Body, Head, read_head, read_response_body

LIMIT = 30.0
_BUFFER = 1 << 20


@dataclass
class Response:
    head: Head
    body: Body

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def data(self) -> bytes:
        return self.body.data


def request(method: str, target: str, *fields: tuple[str, str], body: bytes | None = None) -> bytes:
    """A request; nothing is added but content-length where there is a body."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


class RawHttp1:
    """One connection; an async context manager."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(
        cls, endpoint: Endpoint, *, alpn: Sequence[str] = ("http/1.1",), receive_buffer: int = 0
    ) -> Self:
        sock = socket.socket()
        sock.setblocking(False)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(sock, (endpoint.host, endpoint.port))
        tls = endpoint.tls(alpn) if endpoint.tls else None
        reader, writer = await asyncio.open_connection(
            sock=sock, ssl=tls, server_hostname=endpoint.server_name if tls else None, limit=_BUFFER
        )
        return cls(reader, writer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> Head:
        """The next response head, interim ones included."""
        async with asyncio.timeout(LIMIT):
            head = await read_head(self.reader)
        assert head is not None, "the connection ended where a response was due"
        return head

    async def response(self, method: str = "GET") -> Response:
        """The next final response, whole."""
        async with asyncio.timeout(LIMIT):
            head = await self.head()
            while head.status < 200 and head.status != 101:
                head = await self.head()
            return Response(head, await read_response_body(head, self.reader, method=method))

    async def ask(self, data: bytes) -> Response:
        """Sends a request and reads its response."""
        await self.send(data)
        return await self.response(method=data.split(b" ", 1)[0].decode())

    async def rest(self) -> bytes:
        """Everything up to the peer's end; a reset counts as an end here."""
        async with asyncio.timeout(LIMIT):
            with contextlib.suppress(ConnectionResetError, ssl.SSLError):
                return await self.reader.read()
        return b""

    async def start_tls(self, context: ssl.SSLContext, server_hostname: str) -> None:
        """TLS inside what is open already, as inside a CONNECT."""
        await self.writer.start_tls(context, server_hostname=server_hostname)

    def abort(self) -> None:
        """Goes away without a word: a TCP reset."""
        abort(self.writer)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LIMIT):
                await self.writer.wait_closed()


async def ask(endpoint: Endpoint, data: bytes) -> Response:
    """One request on a connection of its own."""
    async with await RawHttp1.open(endpoint) as connection:
        return await connection.ask(data)
