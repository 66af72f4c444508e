"""The loops of the signers, and that they end."""

from __future__ import annotations

import asyncio

import pytest
from atenet.controller.signing.run import _often

from tests.support.eventually import within


async def test_a_look_is_repeated_when_something_asks_for_it() -> None:
    looked, kick = asyncio.Semaphore(0), asyncio.Event()

    async def look() -> None:
        looked.release()

    loop = asyncio.create_task(_often("it", look, 600, kick))
    for _ in range(3):
        await within(looked.acquire(), 10)
        kick.set()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(loop, 10)


async def test_an_end_that_meets_a_change_is_an_end() -> None:
    """Else the process waits for the loop for ever."""
    looked, kick = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        looked.set()

    loop = asyncio.create_task(_often("it", look, 600, kick))
    await within(looked.wait(), 10)
    await asyncio.sleep(0)
    # Both before the loop runs again.
    kick.set()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(asyncio.shield(loop), 10)
    assert loop.cancelled()
