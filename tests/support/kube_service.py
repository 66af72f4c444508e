"""What stands between a client and the pods of a Service: endpoints that are told late, connections that are spread."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from tests.support.kube_pod import KubePod
from tests.support.kube_way import copy

_LOOK = 0.1


class KubeService:
    """A port on loopback whose connections go round robin to the pods that are endpoints now.

    A pod that is no longer ready is an endpoint for `late` seconds yet: until then nodes go on sending
    to it, and that is what a drain's delay is for.
    """

    def __init__(self, port: int, late: float) -> None:
        self._port = port
        self._late = late
        self._endpoints: list[KubePod] = []
        self._turns = itertools.count()
        self._watches: set[asyncio.Task[None]] = set()
        self._relays: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.sent: dict[int, int] = {}

    @property
    def address(self) -> tuple[str, int]:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    def add(self, pod: KubePod) -> None:
        """A ready pod; it goes by itself."""
        self._endpoints.append(pod)
        self._watches.add(asyncio.create_task(self._watch(pod)))

    def has(self, pod: KubePod) -> bool:
        return pod in self._endpoints

    def connections_of(self, pod: KubePod) -> int:
        """How many were sent to it so far."""
        return self.sent.get(id(pod), 0)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in [*self._watches, *self._relays]:
            task.cancel()
        await asyncio.gather(*self._watches, *self._relays, return_exceptions=True)

    async def _watch(self, pod: KubePod) -> None:
        while await pod.ready():  # noqa: ASYNC110 - as a kubelet's probes look
            await asyncio.sleep(_LOOK)
        await asyncio.sleep(self._late)
        self._endpoints.remove(pod)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pod = self._endpoints[next(self._turns) % len(self._endpoints)]
        self.sent[id(pod)] = self.connections_of(pod) + 1
        with contextlib.closing(writer), contextlib.suppress(OSError):
            back, there = await asyncio.open_connection(sock=await pod.connect(self._port))
            with contextlib.closing(there):
                await self._relay(copy(reader, there), copy(back, writer))

    async def _relay(self, *directions: Coroutine[None, None, None]) -> None:
        tasks = [asyncio.create_task(each) for each in directions]
        self._relays.update(tasks)
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._relays.difference_update(tasks)


@asynccontextmanager
async def kube_service(port: int, *, late: float) -> AsyncIterator[KubeService]:
    """`port`: the pods'."""
    service = KubeService(port, late)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()
