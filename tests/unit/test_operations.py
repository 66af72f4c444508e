import asyncio
import gc

import pytest
from atenet.errors import AteError
from atenet.operations import Operations


async def test_one_at_a_time_per_key_and_different_keys_together() -> None:
    operations = Operations()
    order: list[str] = []
    inside = asyncio.Event()
    go_on = asyncio.Event()

    async def slow() -> None:
        async with operations.lock("a"):
            inside.set()
            await go_on.wait()
            order.append("slow a")

    async def quick(key: str) -> None:
        async with operations.lock(key):
            order.append(f"quick {key}")

    first = operations.spawn(slow())
    await inside.wait()
    second = operations.spawn(quick("a"))
    await operations.detached(quick("b"))
    go_on.set()
    await asyncio.gather(first, second)
    assert order == ["quick b", "slow a", "quick a"]


async def test_a_caller_that_leaves_does_not_end_the_operation() -> None:
    operations = Operations()
    go_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        done.set()

    caller = asyncio.ensure_future(operations.detached(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    await operations.settled()
    assert done.is_set()


async def test_settled_waits_for_what_is_begun_meanwhile() -> None:
    operations = Operations()
    ended = []

    async def second() -> None:
        ended.append("second")

    async def first() -> None:
        operations.spawn(second())
        ended.append("first")

    operations.spawn(first())
    await operations.settled()
    assert ended == ["first", "second"]


async def test_a_failure_reaches_the_caller_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    operations = Operations()

    async def fail() -> None:
        raise AteError("the disk is full")

    with pytest.raises(AteError, match="the disk is full"):
        await operations.detached(fail())
    await operations.settled()
    (record,) = caplog.records
    assert (record.levelname, record.error) == ("WARNING", "the disk is full")


async def test_locks_are_forgotten_when_nobody_holds_them() -> None:
    operations = Operations()
    for number in range(1000):
        async with operations.lock(str(number)):
            pass
    gc.collect()
    assert len(operations._locks) == 0
