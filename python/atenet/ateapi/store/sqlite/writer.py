"""The one writer thread: takes whole functions, runs each in a transaction of its own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from atenet.ateapi.store.news import News
from atenet.ateapi.store.sqlite.database import connect

__all__ = ["Writer"]

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], tuple[T, list[News]]]
"""Its result, and what is told once it is committed."""
Tell = Callable[[list[News]], None]
_Job = tuple[Change[Any], Tell, asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Writer:
    """SQLite has one writer at a time anyway; a queue makes the turn-taking cheap and fair."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    async def run(self, change: Change[T], tell: Tell) -> T:
        """Runs it after all that were handed in before. A caller that leaves does not stop it.

        `tell` is called on the caller's event loop, before its result is there.
        """
        if self._closed:
            raise RuntimeError("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((change, tell, loop, future))
        return await future

    async def close(self) -> None:
        """Runs what was handed in, then ends."""
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        connection = connect(self._path)
        while (job := self._jobs.get()) is not None:
            change, tell, loop, future = job
            try:
                result, news = _transact(connection, change)
            except BaseException as e:  # noqa: BLE001 - belongs to the caller, whatever it is
                _deliver(loop, future, None, e)
            else:
                _soon(loop, functools.partial(tell, news))
                _deliver(loop, future, result, None)
        connection.close()


def _transact(connection: sqlite3.Connection, change: Change[T]) -> tuple[T, list[News]]:
    # IMMEDIATE: the write lock comes first, so that what is read here cannot be outrun.
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = change(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _deliver(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    result: Any,
    error: BaseException | None,
) -> None:
    def settle() -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    _soon(loop, settle)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop ended: nobody is left to tell
        loop.call_soon_threadsafe(call)
