"""Waiting for what happens elsewhere: a condition and a deadline, never a fixed sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


async def eventually(holds: Callable[[], bool | Awaitable[bool]], seconds: float = 30) -> None:
    """Returns as soon as the condition holds; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.02)


async def within(awaitable: Awaitable[_T], seconds: float) -> _T:
    """Its result; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        return await awaitable
