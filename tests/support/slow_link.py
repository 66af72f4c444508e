"""A worker behind a slow link: every byte takes its time, each way."""

import asyncio
import contextlib

from tests.support.addresses import bound_socket
from tests.support.dead_worker import CONNECT_PORT

_CHUNK = 1 << 16


class SlowLink:
    """Relays its own `ip` to `target` on the tunnel port, `delay` seconds later each way."""

    def __init__(self, target: str, delay: float) -> None:
        self._target, self._delay = target, delay
        self.ip = ""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, target: str, delay: float) -> "SlowLink":
        link = cls(target, delay)
        listener = bound_socket(CONNECT_PORT)
        link.ip = listener.getsockname()[0]
        link._server = await asyncio.start_server(link._accept, sock=listener)
        return link

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._target, CONNECT_PORT)
        ways = [self._carry(reader, far_writer), self._carry(far_reader, writer)]
        for way in ways:
            task = asyncio.create_task(way)
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                when, data = await due.get()
                await asyncio.sleep(when - loop.time())
                if not data:
                    return
                writer.write(data)
                await writer.drain()

        delivering = asyncio.create_task(deliver())
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(_CHUNK):
                due.put_nowait((loop.time() + self._delay, data))
            due.put_nowait((loop.time() + self._delay, b""))
            await delivering
        delivering.cancel()
        writer.close()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()
