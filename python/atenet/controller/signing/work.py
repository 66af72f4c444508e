"""Keys to be looked at: each once at a time, again after a failure, several beside each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from atenet.controller.backoff import Backoff
from atenet.controller.signing.cluster import UNREACHABLE
from atenet.errors import AteError

__all__ = ["Work"]

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

_FIRST_RETRY, _LONGEST_RETRY = 0.2, 30.0


class Work(Generic[K]):
    """`add` from a watch, `run` as a task of its own."""

    def __init__(self, what: str, handle: Callable[[K], Awaitable[None]]) -> None:
        self._what = what
        self._handle = handle
        self._queue: asyncio.Queue[K] = asyncio.Queue()
        self._queued: set[K] = set()
        self._running: set[K] = set()
        self._again: set[K] = set()  # added while they were being looked at
        self._failed: dict[K, Backoff] = {}

    def add(self, key: K) -> None:
        """To be looked at soon; at once if nothing else is."""
        if key in self._running:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    async def run(self, beside_each_other: int = 4) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(beside_each_other):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            self._running.add(key)
            try:
                await self._handle(key)
                self._failed.pop(key, None)
            except (AteError, *UNREACHABLE) as error:
                self._retry(key, error)
            finally:
                self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    def _retry(self, key: K, error: Exception) -> None:
        wait = self._failed.setdefault(key, Backoff(_FIRST_RETRY, _LONGEST_RETRY)).wait()
        _log.warning(
            "%s: not now",
            self._what,
            extra={"key": str(key), "error": str(error), "retry_s": round(wait, 2)},
        )
        asyncio.get_running_loop().call_later(wait, self.add, key)
