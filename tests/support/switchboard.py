"""A TCP relay in front of the control plane, so that a test can hang or move the latter."""

import asyncio
import contextlib

from tests.support.addresses import bound_socket


class Switchboard:
    """New connections go to `target`; `hang()` keeps the open ones open and silent."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.address = ""
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self._generation = 0
        self._refusing = False

    @classmethod
    async def start(cls, target: str) -> "Switchboard":
        board = cls(target)
        listener = bound_socket(0)
        host, port = listener.getsockname()
        board.address = f"{host}:{port}"
        board._server = await asyncio.start_server(board._accept, sock=listener)
        return board

    def hang(self) -> None:
        """Nothing passes any more on the connections that are open: no data, no FIN, no reset."""
        self._generation += 1

    def refuse(self, refusing: bool = True) -> None:
        """New connections are closed at once, open ones too."""
        self._refusing = refusing
        if refusing:
            for relay in self._relays:
                relay.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        task.add_done_callback(self._relays.discard)
        host, port = self.target.rsplit(":", 1)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            try:
                generation = self._generation
                await asyncio.gather(
                    self._copy(reader, far_writer, generation),
                    self._copy(far_reader, writer, generation),
                )
            finally:
                far_writer.transport.abort()
        writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, generation: int
    ) -> None:
        while data := await reader.read(65536):
            if generation != self._generation:
                await asyncio.Event().wait()
            writer.write(data)
            await writer.drain()
        if generation != self._generation:
            await asyncio.Event().wait()
        writer.write_eof()

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for relay in list(self._relays):
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None
