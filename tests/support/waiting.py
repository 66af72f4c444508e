"""Waits for a condition of another process, with a deadline."""

import asyncio
from collections.abc import Awaitable, Callable

LIMIT = 30.0
_POLL = 0.02


async def until(condition: Callable[[], bool | Awaitable[bool]], limit: float = LIMIT) -> None:
    """Until `condition()` is true. For what cannot signal: a process, its pages, its log."""
    async with asyncio.timeout(limit):
        while True:
            outcome = condition()
            if outcome if isinstance(outcome, bool) else await outcome:
                return
            await asyncio.sleep(_POLL)
