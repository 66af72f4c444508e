"""Ways out of a pod of the tests: an address in its network namespace that leads to one on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path

from atenet._engine import socket_in_netns

Address = tuple[str, int]
# Or a Unix socket here.
Target = Address | Path


class KubeWays:
    """Listeners inside the namespace; what they accept is carried outside."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._carried: set[asyncio.Task[None]] = set()

    async def open(self, netns: str, ways: Mapping[Address, Target]) -> None:
        """`ways`: the address in there -> the one here."""
        for there, here in ways.items():
            sock = socket.socket(fileno=socket_in_netns(netns))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(there)
            self._servers.append(await asyncio.start_server(self._carrier(here), sock=sock))

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._carried:
            task.cancel()
        await asyncio.gather(*self._carried, return_exceptions=True)

    def _carrier(self, here: Target):  # type: ignore[no-untyped-def]  # what start_server takes
        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(OSError):
                back, out = await _dialled(here)
                with contextlib.closing(out):
                    tasks = [
                        asyncio.create_task(each)
                        for each in (copy(reader, out), copy(back, writer))
                    ]
                    self._carried.update(tasks)
                    # What is cancelled at the end is no news.
                    await asyncio.gather(*tasks, return_exceptions=True)
                    self._carried.difference_update(tasks)

        return carry


async def _dialled(here: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(here, Path):
        return await asyncio.open_unix_connection(here)
    return await asyncio.open_connection(*here)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An end is passed on as an end, a reset as one."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()
