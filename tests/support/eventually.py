"""Waiting for what happens elsewhere: a condition and a deadline, never a fixed sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def eventually(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Returns as soon as the condition holds; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - it holds in another process
            await asyncio.sleep(0.02)
