"""A stop waits for background tasks, and for none of them for ever."""

import asyncio
import logging

import pytest
from atenet.ateapi.ending import ended

from tests.support.eventually import within


async def test_tasks_end_whatever_they_come_to() -> None:
    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("at the very end")

    waiting = asyncio.create_task(asyncio.Event().wait())
    failing = asyncio.create_task(fails())
    await asyncio.sleep(0)
    await ended([waiting, failing], 5.0)
    assert waiting.cancelled()
    assert failing.done()


async def test_a_task_that_loses_its_cancellation_is_named_and_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    free = asyncio.Event()

    async def deaf() -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(deaf(), name="deaf")
    await asyncio.sleep(0)
    with caplog.at_level(logging.ERROR, "atenet.ateapi.ending"):
        await within(ended([task], 0.05), 5.0)
    assert [record.__dict__["task"] for record in caplog.records] == ["deaf"]
    assert not task.done()
    free.set()
    await task


async def test_no_tasks_need_no_wait() -> None:
    await ended([])
