"""Pairs of namespaces made ahead of need, so that a resume does not wait for the kernel."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from concurrent.futures import Executor

from atenet.errors import AteError
from atenet.worker.network import pair as pairs
from atenet.worker.network.firewall import Capturing
from atenet.worker.network.pair import NetworkPair

__all__ = ["PairPool"]

_log = logging.getLogger(__name__)

# Making a pair takes a core for some 30 ms, which the actor that took the last one needs itself.
_LATER_SECONDS = 0.5


class PairPool:
    """Hands out pairs and makes new ones behind the caller's back; each serves one activation.

    `prefix`: starts the name of every namespace; `size`: how many are kept ready (0 = none);
    `capturing`: what becomes of the actors' connections.
    """

    def __init__(
        self, prefix: str, size: int, threads: Executor, capturing: Capturing | None = None
    ) -> None:
        self._prefix = prefix
        self._capturing = capturing
        self._size = size
        self._threads = threads
        self._ready: deque[NetworkPair] = deque()
        self._building: set[asyncio.Task[None]] = set()
        self._later: asyncio.TimerHandle | None = None

    def fill(self) -> None:
        """Starts making what is missing, behind the caller's back."""
        for _ in range(self._size - len(self._ready) - len(self._building)):
            self._start_build().add_done_callback(_report)

    async def acquire(self) -> NetworkPair:
        """A pair nobody used before. Raises AteError when it cannot be made."""
        while not self._ready:
            # A caller that leaves meanwhile leaves the pair to the next one.
            await asyncio.shield(self._start_build())
        pair = self._ready.popleft()
        if not self._ready:
            self.fill()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(_LATER_SECONDS, self._fill_up)
        return pair

    async def release(self, pair: NetworkPair) -> None:
        """Removes the pair's namespaces. Repeatable."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, pairs.demolish, pair)

    async def close(self) -> None:
        """Removes what was made and not used."""
        self._size = 0
        if self._later is not None:
            self._later.cancel()
        await asyncio.gather(*self._building, return_exceptions=True)
        while self._ready:
            await self.release(self._ready.popleft())

    def _fill_up(self) -> None:
        self._later = None
        self.fill()

    def _start_build(self) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._build())
        self._building.add(task)
        task.add_done_callback(self._building.discard)
        return task

    async def _build(self) -> None:
        name = self._prefix + secrets.token_hex(4)
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._threads, pairs.build, name, self._capturing)
        self._ready.append(made)
        # In the same step: counted as both, it would keep the next one from being made.
        if (this := asyncio.current_task()) is not None:
            self._building.discard(this)


def _report(task: asyncio.Task[None]) -> None:
    """The activation that needs the pair will try again, and is told why it cannot have one."""
    if task.cancelled() or (error := task.exception()) is None:
        return
    what = error.message if isinstance(error, AteError) else repr(error)
    _log.warning("cannot make a network ahead of need", extra={"error": what})
