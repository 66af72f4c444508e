"""The store on a PostgreSQL database, shared by any number of control planes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import psycopg

from atenet.ateapi.store.interface import BusyError, Transaction
from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.news import Newsroom, Subscriber
from atenet.ateapi.store.postgres.connection import Statements
from atenet.ateapi.store.postgres.lease import LEASE_SECONDS, Lease
from atenet.ateapi.store.postgres.listener import Listener, notify
from atenet.ateapi.store.postgres.schema import check
from atenet.ateapi.store.postgres.sessions import Connection, Sessions
from atenet.ateapi.store.rows import Locks, Tables
from atenet.errors import AteError

__all__ = ["PostgresStore"]

T = TypeVar("T")
# Connections of one control plane. Writes wait for each other's rows, so they have more, and
# reads have some of their own that no wait can use up.
_WRITERS = 8
_READERS = 4


class PostgresStore:
    """See `store.interface.Store`.

    Writes are READ COMMITTED and lock the rows that they read by key; a claim locks its worker
    and passes over one that another transaction has (SKIP LOCKED) as long as there are others.
    """

    def __init__(self, url: PostgresUrl, lease_seconds: float = LEASE_SECONDS) -> None:
        self._readers = Sessions(url, _READERS, "store-read", reading=True)
        self._writers = Sessions(url, _WRITERS, "store-write")
        self._newsroom = Newsroom()
        self._listener = Listener(url, self._newsroom)
        self._keeper = Sessions(url, 1, "store-lease")
        self._lease = Lease(self._writers, self._keeper, lease_seconds)

    @classmethod
    async def open(cls, url: PostgresUrl, lease_seconds: float = LEASE_SECONDS) -> PostgresStore:
        """`lease_seconds`: how long a control plane that dies holds on to its operations.

        Raises AteError when it cannot be reached or `ateapi migrate` is to be run first."""
        await asyncio.to_thread(check, url)
        made = cls(url, lease_seconds)
        try:
            await made._lease.open()
            await made._listener.open()
        except (BusyError, psycopg.OperationalError) as e:
            await made.close()
            raise AteError(f"cannot use the store {url}: {e}", hint="is it writable?") from None
        return made

    async def read(self, query: Callable[[Transaction], T]) -> T:
        def attempt(connection: Connection, _held: frozenset[str]) -> T:
            return query(Tables(Statements(connection)))

        return await self._readers.run(attempt)

    async def write(self, change: Callable[[Transaction], T]) -> T:
        fences = self._lease.fences

        def attempt(connection: Connection, held: frozenset[str]) -> T:
            statements = Statements(connection)
            for fence in fences:
                fence.check(statements)
            locks = Locks(
                update=" FOR UPDATE",
                share=" FOR SHARE",
                skip=" FOR UPDATE SKIP LOCKED",
                held=held,
            )
            tables = Tables(statements, locks)
            result = change(tables)
            notify(statements, tables.news)
            return result

        return await self._writers.run(attempt)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        return self._newsroom.subscribe(subscriber)

    async def alone(self) -> bool:
        return await self._lease.alone()

    def hold(self, actor_uid: str) -> AbstractAsyncContextManager[None]:
        return self._lease.hold(actor_uid)

    async def close(self) -> None:
        await self._listener.close()
        await self._lease.close()
        for sessions in (self._readers, self._writers, self._keeper):
            await sessions.close()
