"""The workers of this node: which incarnation is where, and what it hosts.

Kept in a file too, so that after a restart of the agent a worker that did not speak up yet can be
told from one that is gone.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio

from atenet.errors import AteError
from atenet.proto import ateworker_pb2_grpc

__all__ = ["KnownWorker", "StaleWorkerError", "Workers"]


class StaleWorkerError(AteError):
    """The call names a worker incarnation that is not the present one."""


@dataclass
class KnownWorker:
    """One worker process. `seen`: monotonic time of its last registration; `hosted`: what it said
    then; `starting`: what it is being told to start, which a registration on its way cannot know."""

    name: str
    epoch: int
    socket_path: str
    hosted: set[str] = field(default_factory=set)
    starting: set[str] = field(default_factory=set)
    seen: float = float("-inf")
    _channel: grpc.aio.Channel | None = None

    def stub(self) -> ateworker_pb2_grpc.WorkerStub:
        if self._channel is None:
            options = [("grpc.max_reconnect_backoff_ms", 500)]
            self._channel = grpc.aio.insecure_channel(f"unix:{self.socket_path}", options=options)
        return ateworker_pb2_grpc.WorkerStub(self._channel)

    def accepts(self) -> bool:
        """Whether a process listens on its socket. Does not wait."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            try:
                probe.connect(self.socket_path)
            except BlockingIOError:
                return True  # its queue is full: slow, but there
            except OSError:
                return False
        return True

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close(None)
            self._channel = None


class Workers:
    """`file`: where the table is kept; `silent_after`: seconds after which a worker is suspect."""

    def __init__(
        self,
        file: Path,
        *,
        silent_after: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._silent_after = silent_after
        self._clock = clock
        self._started = clock()
        self._known = {worker.name: worker for worker in _load(file)}

    async def registered(self, name: str, epoch: int, socket_path: str, hosted: set[str]) -> bool:
        """Notes a registration. False, and nothing noted, when a later incarnation is known."""
        before = self._known.get(name)
        if before is not None and before.epoch > epoch:
            return False
        if before is None or (before.epoch, before.socket_path) != (epoch, socket_path):
            if before is not None:
                await before.close()
            before = self._known[name] = KnownWorker(name, epoch, socket_path)
            self._save()
        before.hosted = hosted
        before.seen = self._clock()
        return True

    def current(self, name: str, epoch: int) -> KnownWorker:
        """The worker, if that is its present incarnation. Raises StaleWorkerError."""
        worker = self._known.get(name)
        if worker is None or worker.epoch != epoch:
            known = "unknown here" if worker is None else f"at epoch {worker.epoch}"
            raise StaleWorkerError(f"worker {name!r} is {known}, the call names epoch {epoch}")
        return worker

    def find(self, name: str, epoch: int) -> KnownWorker | None:
        """The same; None when that incarnation is not the present one."""
        worker = self._known.get(name)
        return worker if worker is not None and worker.epoch == epoch else None

    def hosting(self, uid: str) -> KnownWorker | None:
        """The worker whose last word was that it hosts this actor, or that is starting it."""
        found = (w for w in self._known.values() if uid in w.hosted or uid in w.starting)
        return next(found, None)

    @property
    def still_waiting(self) -> bool:
        """Whether a worker that was known before this start may yet say what it hosts."""
        waited = self._clock() - self._started
        unheard = any(worker.seen == float("-inf") for worker in self._known.values())
        return unheard and waited <= self._silent_after

    def is_silent(self, worker: KnownWorker) -> bool:
        """Whether it has not spoken for so long that it may hang."""
        return self._clock() - max(worker.seen, self._started) > self._silent_after

    def alive(self, name: str, epoch: int) -> bool:
        """Whether that incarnation lives, or may yet say so: after its own start the agent waits as
        long for a worker as it bears with its silence later."""
        worker = self._known.get(name)
        if worker is None:
            return self._clock() - self._started <= self._silent_after
        return worker.epoch == epoch and worker.accepts() and not self.is_silent(worker)

    async def close(self) -> None:
        for worker in self._known.values():
            await worker.close()

    def _save(self) -> None:
        table = {w.name: {"epoch": w.epoch, "socket": w.socket_path} for w in self._known.values()}
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps(table))
        partial.replace(self._file)


def _load(file: Path) -> list[KnownWorker]:
    """An unreadable table is an empty one: workers register again within seconds."""
    try:
        table: dict[str, dict[str, Any]] = json.loads(file.read_text())
        return [KnownWorker(n, int(e["epoch"]), str(e["socket"])) for n, e in table.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
