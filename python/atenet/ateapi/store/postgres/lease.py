"""This control plane's claim to be alive, and the actors whose operations it runs.

A replica says at short intervals that it lives. One that did not for as long as a lease lasts
counts as dead, and what it held may be taken over; a token that never comes twice fences off its
late writes. All times are the database's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass

from atenet.ateapi.store.interface import BusyError, HeldError
from atenet.ateapi.store.postgres.connection import Statements
from atenet.ateapi.store.postgres.sessions import Connection, Sessions

__all__ = ["LEASE_SECONDS", "Fence", "Lease"]

# Well below the five seconds that a router parks a request for: whoever retries finds it taken over.
LEASE_SECONDS = 2.0
_RENEWALS = 5  # in the time that a lease lasts
# Dead replicas are kept this long only so that people can see them.
_REMEMBERED_SECONDS = 3600.0
_log = logging.getLogger(__name__)

_ALIVE = (
    "INSERT INTO replicas (id, expires_at) VALUES (?, clock_timestamp() + ? * interval '1 s')"
    " ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at"
)
_OTHERS = "SELECT count(*) FROM replicas WHERE id <> ? AND expires_at > clock_timestamp()"
_TAKE = (
    "INSERT INTO operations (actor_uid, replica, token)"
    " VALUES (?, ?, nextval('operation_tokens'))"
    " ON CONFLICT (actor_uid) DO UPDATE SET replica = excluded.replica, token = excluded.token"
    # Its own row that it does not hold any more is one that could not be given back in time.
    " WHERE operations.replica = excluded.replica OR NOT EXISTS (SELECT 1 FROM replicas"
    " WHERE replicas.id = operations.replica AND replicas.expires_at > clock_timestamp())"
    " RETURNING token"
)


@dataclass(frozen=True)
class Fence:
    """What a write must still hold when it commits."""

    actor_uid: str
    token: int

    def check(self, statements: Statements) -> None:
        """Keeps others from taking over until this transaction ends. Raises HeldError."""
        row = statements.execute(
            "SELECT 1 FROM operations WHERE actor_uid = ? AND token = ? FOR SHARE",
            (self.actor_uid, self.token),
        ).fetchone()
        if row is None:
            raise HeldError(self.actor_uid)


class Lease:
    """`keeper`: sessions that nothing else uses; a lease must be renewed whatever waits."""

    def __init__(self, sessions: Sessions, keeper: Sessions, seconds: float) -> None:
        self._seconds = seconds
        self._sessions = sessions
        self._keeper = keeper
        self._id = uuid.uuid4().hex
        self._held: set[str] = set()
        self._to_give_back: set[str] = set()
        self._fences: ContextVar[tuple[Fence, ...]] = ContextVar("fences", default=())
        self._keeping: asyncio.Task[None] | None = None

    @property
    def fences(self) -> tuple[Fence, ...]:
        """Of the operation that the running task belongs to; several where it holds several actors."""
        return self._fences.get()

    async def open(self) -> None:
        """Raises BusyError."""
        await self._renew()
        self._keeping = asyncio.get_running_loop().create_task(self._keep(), name="store-lease")

    async def close(self) -> None:
        """Gives up everything at once, so that others need not wait for the lease to end."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        with contextlib.suppress(BusyError):
            await self._keeper.run(self._gone)

    async def alone(self) -> bool:
        """Whether no other replica is alive. Raises BusyError."""

        def count(connection: Connection, _held: frozenset[str]) -> int:
            row = Statements(connection).execute(_OTHERS, (self._id,)).fetchone()
            return int(row[0])

        return await self._keeper.run(count) == 0

    @contextlib.asynccontextmanager
    async def hold(self, actor_uid: str) -> AsyncIterator[None]:
        """See `store.interface.Store.hold`."""
        if actor_uid in self._held:
            raise HeldError(actor_uid)
        self._held.add(actor_uid)
        try:
            fence = Fence(actor_uid, await self._take(actor_uid))
            before = self._fences.set((*self._fences.get(), fence))
            try:
                yield
            finally:
                self._fences.reset(before)
                await self._give_back(actor_uid)
        finally:
            self._held.discard(actor_uid)

    async def _take(self, actor_uid: str) -> int:
        def take(connection: Connection, _held: frozenset[str]) -> int | None:
            row = Statements(connection).execute(_TAKE, (actor_uid, self._id)).fetchone()
            return int(row[0]) if row else None

        try:
            token = await self._sessions.run(take)
        except BaseException:
            # Whoever leaves now does not know whether it was taken.
            self._to_give_back.add(actor_uid)
            raise
        if token is None:
            raise HeldError(actor_uid)
        return token

    async def _give_back(self, actor_uid: str) -> None:
        """Those under a later token, taken over meanwhile, are another replica's and stay."""
        self._to_give_back.add(actor_uid)
        try:
            await self._sessions.run(
                lambda connection, _: _delete(connection, "actor_uid = ?", (actor_uid,), self._id)
            )
        except BusyError as e:
            _log.warning("an operation is given back later", extra={"error": str(e)})
        else:
            self._to_give_back.discard(actor_uid)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / _RENEWALS)
            try:
                await self._renew()
                await self._catch_up()
            except BusyError as e:
                _log.warning("the lease is not renewed", extra={"error": str(e)})
            except Exception:  # noqa: BLE001 - a lease that ends for a slip would stop all work
                _log.exception("renewing the lease failed")

    async def _catch_up(self) -> None:
        for actor_uid in self._to_give_back - self._held:
            self._held.add(actor_uid)
            try:
                await self._give_back(actor_uid)
            finally:
                self._held.discard(actor_uid)

    async def _renew(self) -> None:
        def renew(connection: Connection, _held: frozenset[str]) -> None:
            statements = Statements(connection)
            statements.execute(_ALIVE, (self._id, self._seconds))
            statements.execute(
                "DELETE FROM replicas WHERE expires_at < clock_timestamp() - ? * interval '1 s'",
                (_REMEMBERED_SECONDS,),
            )

        await self._keeper.run(renew)

    def _gone(self, connection: Connection, _held: frozenset[str]) -> None:
        _delete(connection, "TRUE", (), self._id)
        Statements(connection).execute("DELETE FROM replicas WHERE id = ?", (self._id,))


def _delete(connection: Connection, condition: str, values: tuple[str, ...], replica: str) -> None:
    query = f"DELETE FROM operations WHERE {condition} AND replica = ?"  # noqa: S608 - ours
    Statements(connection).execute(query, (*values, replica))
