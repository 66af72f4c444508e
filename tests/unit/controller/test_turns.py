"""Turns: each key once, never twice at a time, later after a failure."""

from __future__ import annotations

import asyncio

from atenet.controller.turns import Turns


async def test_called_for_often_a_key_has_one_turn() -> None:
    turns: Turns[str] = Turns()
    for _ in range(3):
        turns.call("a")
    turns.call("b")
    assert [await turns.next(), await turns.next()] == ["a", "b"]
    assert not turns.idle
    turns.done("a")
    turns.done("b")
    assert turns.idle


async def test_called_for_during_its_turn_it_has_another_one_and_not_before() -> None:
    turns: Turns[str] = Turns()
    turns.call("a")
    await turns.next()
    turns.call("a")
    assert len(turns) == 0
    turns.done("a")
    assert await turns.next() == "a"


async def test_a_failure_waits_longer_each_time_and_success_forgets_it() -> None:
    turns: Turns[str] = Turns()
    waits = []
    for _ in range(12):
        turns.call("a")
        await turns.next()
        waits.append(turns.failed("a", spread=lambda: 1.0))
    assert waits[:4] == [0.1, 0.2, 0.4, 0.8]
    assert waits[-1] == 60.0
    turns.call("a")
    await turns.next()
    turns.done("a")
    turns.call("a")
    await turns.next()
    assert turns.failed("a", spread=lambda: 1.0) == 0.1
    turns.close()


async def test_its_turn_comes_by_itself_after_a_failure() -> None:
    turns: Turns[str] = Turns()
    turns.call("a")
    await turns.next()
    turns.failed("a", spread=lambda: 0.0)
    async with asyncio.timeout(5):
        assert await turns.next() == "a"


async def test_what_changed_during_a_turn_that_failed_is_looked_at_at_once() -> None:
    turns: Turns[str] = Turns()
    turns.call("a")
    await turns.next()
    turns.call("a")
    turns.failed("a")
    assert len(turns) == 1


async def test_of_two_plans_the_earlier_counts_and_a_call_replaces_both() -> None:
    turns: Turns[str] = Turns()
    turns.call_later("a", 0.01)
    turns.call_later("a", 3600)
    async with asyncio.timeout(5):
        assert await turns.next() == "a"
    turns.done("a", again_in=3600)
    turns.call("a")
    assert await turns.next() == "a"
    turns.done("a")
    assert turns.idle
    turns.close()
