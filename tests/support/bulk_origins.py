"""Actors that stream: much data, slow data, data cut short."""

import asyncio
import hashlib

from tests.support.http1_message import LAST_CHUNK, chunk, read_chunk
from tests.support.origins import Exchange, Handler

BLOCK = bytes(range(256)) * 256


def download(size: int, *, chunked: bool = False, close: bool = False) -> Handler:
    """Sends `size` bytes of a known pattern: length-framed, chunked, or ended by the connection."""

    async def handler(exchange: Exchange) -> None:
        framing = "transfer-encoding: chunked" if chunked else f"content-length: {size}"
        if close:
            exchange.keep_alive = False
            framing = "connection: close" if not chunked else f"{framing}\r\nconnection: close"
        await exchange.send(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode())
        for offset in range(0, size, len(BLOCK)):
            data = BLOCK[: min(len(BLOCK), size - offset)]
            await exchange.send(chunk(data) if chunked else data)
        if chunked:
            await exchange.send(LAST_CHUNK)

    return handler


def pattern_digest(size: int) -> str:
    """The SHA-256 of what `download(size)` sends."""
    digest = hashlib.sha256()
    for offset in range(0, size, len(BLOCK)):
        digest.update(BLOCK[: min(len(BLOCK), size - offset)])
    return digest.hexdigest()


async def measure_upload(exchange: Exchange) -> None:
    """Reads the request's body in pieces; answers its length and SHA-256."""
    digest, size = hashlib.sha256(), 0
    async for data in _pieces(exchange):
        digest.update(data)
        size += len(data)
    await exchange.answer(200, f"{size} {digest.hexdigest()}".encode())


async def _pieces(exchange: Exchange):  # type: ignore[no-untyped-def]
    if exchange.head.chunked:
        while data := await read_chunk(exchange.reader):
            yield data
        await exchange.reader.readexactly(2)
        return
    left = exchange.head.length or 0
    while left:
        data = await exchange.reader.read(min(left, 1 << 18))
        if not data:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(data)
        yield data


def event_stream(lines: asyncio.Queue[bytes | None]) -> Handler:
    """Server-sent events: each line that the test puts goes out at once; None ends it."""

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        while (line := await lines.get()) is not None:
            await exchange.send(chunk(b"data: " + line + b"\n\n"))
        await exchange.send(LAST_CHUNK)

    return handler


def cut_short(promised: int, sent: int, *, reset: bool = False) -> Handler:
    """Promises more than it sends, then closes or resets."""

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(
            f"HTTP/1.1 200 OK\r\ncontent-length: {promised}\r\n\r\n".encode() + b"x" * sent
        )
        exchange.keep_alive = False
        if reset:
            exchange.reset()

    return handler


async def until_gone(exchange: Exchange) -> None:
    """Sends a head, then nothing, until the peer goes away."""
    await exchange.read_body()
    await exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"first"))
    await exchange.reader.read(1)
    exchange.keep_alive = False
