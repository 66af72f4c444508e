"""News by LISTEN and NOTIFY: told in the transaction that makes them true, heard by every control plane."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Any

import psycopg

from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.news import News, Newsroom, Topic
from atenet.ateapi.store.postgres.connection import Statements, conninfo

__all__ = ["Listener", "notify"]

_CHANNEL = "atenet"
_FIRST_DELAY = 0.1
_LAST_DELAY = 2.0
_log = logging.getLogger(__name__)


def notify(statements: Statements, news: Iterable[News]) -> None:
    """Heard if and when the transaction commits; the same news twice are heard once."""
    for item in news:
        payload = f"{item.topic.value} {item.subject}"
        statements.execute("SELECT pg_notify(?, ?)", (_CHANNEL, payload))


class Listener:
    """A connection that only listens. While it is away news are missed, and it says so after."""

    def __init__(self, url: PostgresUrl, newsroom: Newsroom) -> None:
        self._url = url
        self._newsroom = newsroom
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Returns once it listens. Raises psycopg.OperationalError."""
        connection = await self._connect()
        loop = asyncio.get_running_loop()
        self._listening = loop.create_task(self._listen(connection), name="store-news")

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        connection = await psycopg.AsyncConnection.connect(conninfo(self._url), autocommit=True)
        await connection.execute(f"LISTEN {_CHANNEL}".encode())
        return connection

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            async with connection:
                with contextlib.suppress(psycopg.OperationalError):
                    async for heard in connection.notifies():
                        self._newsroom.publish([_read(heard.payload)])
            _log.warning("news of the store are not heard", extra={"store": str(self._url)})
            connection = await self._reconnected()
            self._newsroom.publish([News(Topic.ANYTHING)])

    async def _reconnected(self) -> psycopg.AsyncConnection[Any]:
        delay = _FIRST_DELAY
        while True:
            try:
                return await self._connect()
            except psycopg.OperationalError:
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LAST_DELAY)


def _read(payload: str) -> News:
    topic, _, subject = payload.partition(" ")
    try:
        return News(Topic(topic), subject)
    except ValueError:  # of a newer control plane on the same database
        return News(Topic.ANYTHING)
