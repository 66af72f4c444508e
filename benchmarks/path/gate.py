"""A control plane in this process whose answers the measure holds back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc.aio
from atenet.proto import ateapi_pb2 as pb

from benchmarks.path.control import answer, serve
from benchmarks.path.identity import WORKER_ID, BenchIdentity
from benchmarks.path.program import free_port

__all__ = ["Gate", "gate"]


class Gate:
    """Resumes end when `let_through` is called; until then they run, or find no room."""

    def __init__(self, worker_of: Callable[[str], str], *, no_room: bool) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.calls = 0
        self._worker_of = worker_of
        self._no_room = no_room
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._ended = 0.0

    async def resume(
        self, request: pb.ResumeActorRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> bytes:
        self.calls += 1
        if self._no_room:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no free workers available")
        await self._open.wait()
        found = request.actor
        ip = self._worker_of(f"{found.atespace}/{found.name}")
        text = answer(found.atespace, found.name, ip, WORKER_ID, resumed=True)
        self._ended = time.monotonic()
        return text

    def let_through(self) -> None:
        """Ends the resumes that run and those that come."""
        self._loop.call_soon_threadsafe(self._open.set)

    def shut(self) -> None:
        """Holds the resumes that come from here on."""
        self._loop.call_soon_threadsafe(self._open.clear)

    @property
    def ended(self) -> float:
        """When the last resume ended, on the monotonic clock."""
        return self._ended

    def run(self, credential: Path, roots: Path, serving: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            serve(self.address, self.resume, credential.read_bytes(), roots.read_bytes())
        )
        serving.set()
        self._loop.run_forever()
        self._loop.run_until_complete(server.stop(None))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def gate(
    identity: BenchIdentity, worker_of: Callable[[str], str], *, no_room: bool = False
) -> Iterator[Gate]:
    """A running one. `worker_of`: the worker's address of an actor.

    `no_room`: every call is refused for want of a worker, so that requests park."""
    made, serving = Gate(worker_of, no_room=no_room), threading.Event()
    thread = threading.Thread(target=made.run, args=(identity.api, identity.pods, serving))
    thread.start()
    try:
        serving.wait(30)
        yield made
    finally:
        made.stop()
        thread.join()
