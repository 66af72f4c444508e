"""Workers that are not there: addresses that swallow, refuse, or never finish a handshake."""

import asyncio
import contextlib
import socket

from tests.support.addresses import bound_socket, candidates, loopback_address

CONNECT_PORT = 8443


class BlackHole:
    """An address whose port drops SYNs: its accept queue is full and nobody accepts."""

    def __init__(self) -> None:
        self._listener = bound_socket(CONNECT_PORT, backlog=0)
        self.ip: str = self._listener.getsockname()[0]
        # Backlog 0 queues one connection; a second one makes sure that the queue is full.
        self._fillers = [self._fill() for _ in range(2)]

    def _fill(self) -> socket.socket:
        filler = socket.socket()
        filler.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            filler.connect((self.ip, CONNECT_PORT))
        return filler

    def close(self) -> None:
        for filler in self._fillers:
            filler.close()
        self._listener.close()


def refusing_address() -> str:
    """An address where nothing listens on the tunnel port."""
    for ip in candidates():
        with socket.socket() as probe:
            if probe.connect_ex((ip, CONNECT_PORT)) != 0:
                return ip
    return loopback_address()


class SilentWorker:
    """Accepts TCP and never says a word of TLS, until it is closed."""

    def __init__(self, ip: str, server: asyncio.Server) -> None:
        self.ip = ip
        self._server = server
        self._writers: list[asyncio.StreamWriter] = []
        self.connections = 0

    @classmethod
    async def start(cls) -> "SilentWorker":
        listener = bound_socket(CONNECT_PORT)
        silent = cls(listener.getsockname()[0], None)  # type: ignore[arg-type]
        silent._server = await asyncio.start_server(silent._accept, sock=listener)
        return silent

    async def _accept(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)

    async def close(self) -> None:
        """Frees the address, so that a healthy worker can take it."""
        self._server.close()
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        await self._server.wait_closed()
