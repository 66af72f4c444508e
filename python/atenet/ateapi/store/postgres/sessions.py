"""Threads that each keep one connection, and run whole transactions on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from atenet.ateapi.store.interface import BusyError, ContradictionError
from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.postgres.connection import connect
from atenet.ateapi.store.rows import OutrunError

__all__ = ["Attempt", "Connection", "Sessions"]

T = TypeVar("T")
Connection = psycopg.Connection[Any]
Attempt = Callable[[Connection, frozenset[str]], T]
"""One try of a transaction, given the workers that earlier tries found held."""

# Reruns of one transaction that others keep outrunning; each time somebody else got further.
_MOST_ATTEMPTS = 100
# A server that restarts breaks each thread's connection once.
_MOST_LOSSES = 2
_log = logging.getLogger(__name__)


class _LostError(Exception):
    """The connection broke before anything was committed."""


class Sessions:
    """`count` threads. A connection that breaks is replaced at its next use."""

    def __init__(self, url: PostgresUrl, count: int, name: str, *, reading: bool = False) -> None:
        self._url = url
        self._reading = reading
        self._own = threading.local()
        self._made: set[Connection] = set()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, attempt: Attempt[T]) -> T:
        """Its result, committed. A caller that leaves does not stop it.

        Raises BusyError when the database cannot be reached or does not get to it, and
        ContradictionError.
        """
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._threads, self._run, attempt))

    async def close(self) -> None:
        """Runs what was handed in, then ends."""
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._made:
            connection.close()
        self._made.clear()

    def _run(self, attempt: Attempt[T]) -> T:
        try:
            return self._insisted(attempt)
        except psycopg.IntegrityError as e:
            raise ContradictionError(_line(e)) from None
        except (psycopg.OperationalError, psycopg.InternalError) as e:
            raise BusyError(_line(e)) from None

    def _insisted(self, attempt: Attempt[T]) -> T:
        held: frozenset[str] = frozenset()
        clashed, losses = False, 0
        for _ in range(_MOST_ATTEMPTS):
            try:
                return self._once(attempt, held)
            except OutrunError as e:
                held |= {e.worker}
            except (errors.SerializationFailure, errors.DeadlockDetected):
                continue
            except errors.UniqueViolation:
                # Somebody else made it after this transaction looked: the next try sees it.
                if clashed:
                    raise
                clashed = True
            except _LostError as e:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise BusyError(str(e)) from None
        raise BusyError("too many others want the same rows")

    def _once(self, attempt: Attempt[T], held: frozenset[str]) -> T:
        connection = self._connection()
        try:
            result = attempt(connection, held)
        except BaseException as e:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
            if isinstance(e, psycopg.Error) and connection.closed:
                raise _LostError(_line(e)) from None
            raise
        # If the connection breaks from here on, nobody knows whether it was committed: no rerun.
        connection.commit()
        return result

    def _connection(self) -> Connection:
        found: Connection | None = getattr(self._own, "connection", None)
        if found is not None and not found.closed:
            return found
        if found is not None:
            self._made.discard(found)
            _log.warning("connection to the store lost", extra={"store": str(self._url)})
        made = connect(self._url)
        if self._reading:
            made.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            made.read_only = True
        self._own.connection = made
        self._made.add(made)
        return made


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
