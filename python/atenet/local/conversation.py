"""What `ate` and the supervisor say to each other: one JSON object a line, over a Unix socket.

Request: {"op": "status"} or {"op": "stop"}. Answer: any number of {"event": ...} lines, then one
line with "done": true.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from atenet.errors import AteError

__all__ = ["Answer", "Listener", "ask"]

Message = dict[str, Any]
# Handles one request: yields its lines; the last one is marked done by the server.
Answer = Callable[[str], AsyncIterator[Message]]

_PATIENCE_SECONDS = 20.0  # a supervisor that stops says so every second


def ask(path: Path, operation: str) -> Iterator[Message]:
    """Asks the supervisor behind this socket; yields its lines as they come.

    Raises ConnectionError when nobody listens there, AteError when it hangs up half way.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_SECONDS)
        try:
            connection.connect(os.fspath(path))
        except OSError as error:
            raise ConnectionError(f"{path}: {error.strerror}") from error
        connection.sendall(json.dumps({"op": operation}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            while line := _read(lines):
                message = json.loads(line)
                yield message
                if message.get("done"):
                    return
    raise AteError(
        "the supervisor ended in the middle of its answer",
        hint="`ate down` cleans up after it; its log says why",
    )


def _read(lines: BinaryIO) -> bytes:
    try:
        return lines.readline()
    except TimeoutError:
        raise AteError(
            f"the supervisor has said nothing for {_PATIENCE_SECONDS:g} s",
            hint="its log says why; `ate down` stops it by force",
        ) from None
    except ConnectionError:
        return b""


class Listener:
    """The supervisor's side."""

    def __init__(self) -> None:
        self._open = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def listen(self, path: Path, answer: Answer) -> asyncio.Server:
        """Serves on a socket that only its owner may open. Nothing may be at `path`."""
        mask = os.umask(0o177)
        try:
            return await asyncio.start_unix_server(self._serve(answer), path)
        finally:
            os.umask(mask)

    async def finished(self, limit_seconds: float = 2.0) -> None:
        """Returns when every answer that was begun is out, or after the limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_seconds):
                await self._quiet.wait()

    def _count(self, change: int) -> None:
        self._open += change
        if self._open:
            self._quiet.clear()
        else:
            self._quiet.set()

    def _serve(
        self, answer: Answer
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._count(+1)
            try:
                operation = _parse(await reader.readline())
                async for message in answer(operation):
                    writer.write(json.dumps(message).encode() + b"\n")
                    await writer.drain()
            except ConnectionError:
                pass  # whoever asked has gone
            finally:
                writer.close()
                self._count(-1)

        return serve


def _parse(line: bytes) -> str:
    try:
        return str(json.loads(line)["op"])
    except (ValueError, KeyError, TypeError):
        return ""
