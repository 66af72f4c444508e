import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from atenet.errors import AteError
from atenet.worker.network import PairPool, netns
from atenet.worker.network import pair as pairs

from tests.support.eventually import eventually


@pytest.fixture
async def pool(prefix: str) -> AsyncIterator[PairPool]:
    with ThreadPoolExecutor(4) as threads:
        made = PairPool(prefix, 2, threads)
        yield made
        await made.close()


async def test_pairs_are_made_ahead_and_made_up_for(pool: PairPool, prefix: str) -> None:
    pool.fill()
    # Names are there before the pairs are; who asks meanwhile has one made for itself.
    await eventually(lambda: len(pool._ready) == 2)
    assert len(netns.names(prefix)) == 4
    first = await pool.acquire()
    await eventually(lambda: len(netns.names(prefix)) == 6)
    await pool.release(first)
    assert first.runtime not in netns.names(prefix)


async def test_what_one_actor_took_is_made_while_it_starts_only_if_it_was_the_last(
    pool: PairPool, prefix: str
) -> None:
    pool.fill()
    await eventually(lambda: len(pool._ready) == 2)
    first = await pool.acquire()
    assert not pool._building
    second = await pool.acquire()
    assert len(pool._building) == 2
    await eventually(lambda: len(pool._ready) == 2)
    for pair in (first, second):
        await pool.release(pair)


async def test_a_pair_that_is_taken_as_soon_as_it_is_ready_is_made_up_for(
    pool: PairPool, prefix: str
) -> None:
    pool.fill()
    taken = []
    async with asyncio.timeout(60):
        for _ in range(4):
            # The very turn in which they are there.
            while len(pool._ready) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
            taken.append(await pool.acquire())
    await asyncio.gather(*(pool.release(pair) for pair in taken))


async def test_a_burst_larger_than_the_pool_is_served(pool: PairPool, prefix: str) -> None:
    pool.fill()
    taken = await asyncio.gather(*(pool.acquire() for _ in range(5)))
    assert len({pair.name for pair in taken}) == 5
    await asyncio.gather(*(pool.release(pair) for pair in taken))


async def test_close_removes_what_nobody_used(pool: PairPool, prefix: str) -> None:
    pool.fill()
    await pool.close()
    assert netns.names(prefix) == []


async def test_a_caller_that_leaves_loses_no_pair(pool: PairPool, prefix: str) -> None:
    leaving = asyncio.ensure_future(pool.acquire())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await pool.close()
    assert netns.names(prefix) == []


async def test_a_pair_that_cannot_be_made_is_reported_to_who_needs_it(
    pool: PairPool, prefix: str
) -> None:
    with mock.patch.object(pairs, "build", side_effect=AteError("no namespaces today")):
        pool.fill()
        with pytest.raises(AteError, match="no namespaces today"):
            await pool.acquire()
    pair = await pool.acquire()
    await pool.release(pair)
