"""Operations that belong to nobody: one at a time per key, and no caller's going away ends one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from atenet.errors import AteError

__all__ = ["Operations"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Operations:
    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: set[asyncio.Task[Any]] = set()

    def lock(self, key: str) -> asyncio.Lock:
        """Hold it around everything that changes what the key stands for."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def detached(self, operation: Coroutine[Any, Any, _T]) -> _T:
        """Its result. A caller that is cancelled leaves; the operation goes on to its end."""
        return await asyncio.shield(self.spawn(operation))

    def spawn(self, operation: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Starts it; `settled` waits for it."""
        task = asyncio.get_running_loop().create_task(operation)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def settled(self) -> None:
        """Returns when nothing is running any more, however it ended."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        # A caller that is still there is told too; for one that left this is the only trace.
        expected = isinstance(error, AteError)
        _log.log(
            logging.WARNING if expected else logging.ERROR,
            "operation failed",
            extra={"error": str(error)},
            exc_info=None if expected else error,
        )
