"""Whose turn it is: each key once, however often it is called for, and never twice at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from atenet.controller.backoff import Backoff

__all__ = ["Turns"]

_K = TypeVar("_K", bound=Hashable)
_FIRST_BACKOFF = 0.1
_LAST_BACKOFF = 60.0


class Turns(Generic[_K]):
    """Called for while it has its turn, a key gets another one after it."""

    def __init__(self) -> None:
        self._waiting: dict[_K, None] = {}
        self._running: set[_K] = set()
        self._again: set[_K] = set()
        self._later: dict[_K, asyncio.TimerHandle] = {}
        self._failed: dict[_K, Backoff] = {}
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Nobody has a turn or waits for one; some may later."""
        return not self._waiting and not self._running

    def call(self, key: _K) -> None:
        if key in self._running:
            self._again.add(key)
            return
        self._cancel_later(key)
        self._waiting[key] = None
        self._news.set()

    def call_later(self, key: _K, seconds: float) -> None:
        """Unless it is called for earlier."""
        loop = asyncio.get_running_loop()
        planned = self._later.get(key)
        if planned is not None and planned.when() <= loop.time() + seconds:
            return
        self._cancel_later(key)
        self._later[key] = loop.call_later(seconds, self._due, key)

    async def next(self) -> _K:
        """The next one's turn begins; `done` or `failed` ends it."""
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        self._running.add(key)
        return key

    def done(self, key: _K, *, again_in: float | None = None) -> None:
        self._failed.pop(key, None)
        self._end(key)
        if again_in is not None and key not in self._waiting:
            self.call_later(key, again_in)

    def failed(self, key: _K, spread: Callable[[], float] = random.random) -> float:
        """Its turn comes again by itself, each time later; in how many seconds."""
        backoff = self._failed.setdefault(key, Backoff(_FIRST_BACKOFF, _LAST_BACKOFF))
        wait = backoff.wait(spread)
        self._end(key)
        if key not in self._waiting:  # else something changed meanwhile: it may go better at once
            self.call_later(key, wait)
        return wait

    def close(self) -> None:
        for key in list(self._later):
            self._cancel_later(key)

    def _end(self, key: _K) -> None:
        self._running.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.call(key)

    def _due(self, key: _K) -> None:
        self._later.pop(key, None)
        self.call(key)

    def _cancel_later(self, key: _K) -> None:
        planned = self._later.pop(key, None)
        if planned is not None:
            planned.cancel()
