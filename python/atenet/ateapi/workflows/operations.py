"""Running operations: one at a time per actor, not tied to the caller that asked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import grpc

from atenet.ateapi import audit
from atenet.ateapi.ending import ended
from atenet.ateapi.failure import CallError
from atenet.ateapi.store import BusyError, HeldError, Store

__all__ = ["OperationHeldError", "Operations"]

T = TypeVar("T")

# Failures kept in mind; forgetting one early only lets the watch retry early.
_REMEMBERED = 10_000
_log = logging.getLogger(__name__)


class OperationHeldError(CallError):
    """Another operation has the actor, here or in another control plane."""

    def __init__(self) -> None:
        super().__init__(grpc.StatusCode.ABORTED, "another operation holds the actor; retry")


class Operations:
    """An operation that began runs to its end, whether its caller waits or leaves."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._failed: dict[str, float] = {}  # when, oldest first

    async def run(self, uid: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` under the actor's operation lock. Raises CallError; Aborted if it is held."""
        if uid in self._running:
            raise OperationHeldError()
        task = asyncio.get_running_loop().create_task(
            self._locked(uid, work), name=f"operation {uid}"
        )
        self._running[uid] = task
        task.add_done_callback(lambda done: self._ended(uid, done))
        return await asyncio.shield(task)

    async def _locked(self, uid: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        audit.on_own_account()
        try:
            async with self._store.hold(uid):
                return await work()
        except HeldError:
            raise OperationHeldError() from None

    @property
    def count(self) -> int:
        return len(self._running)

    def holds(self, uid: str) -> bool:
        """Whether an operation of this process holds the actor."""
        return uid in self._running

    def busy_or_just_was(self, uid: str, seconds: float) -> bool:
        """The same, or one failed less than `seconds` ago."""
        failed = self._failed.get(uid)
        return uid in self._running or (failed is not None and time.monotonic() - failed < seconds)

    async def drain(self, seconds: float) -> None:
        """Waits for what runs. What is left then is cut; the next start continues it."""
        tasks = list(self._running.values())
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=seconds)
        await ended(left)

    def _ended(self, uid: str, task: asyncio.Task[Any]) -> None:
        self._running.pop(uid, None)
        # Its caller may have left: the failure is then seen here only.
        error = None if task.cancelled() else task.exception()
        self._failed.pop(uid, None)
        if error is not None and not isinstance(error, OperationHeldError):
            self._failed[uid] = time.monotonic()
            if len(self._failed) > _REMEMBERED:
                del self._failed[next(iter(self._failed))]
        if error is not None and not isinstance(error, (CallError, BusyError)):
            _log.error("operation failed", exc_info=error, extra={"actor_uid": uid})
