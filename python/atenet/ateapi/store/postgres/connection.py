"""Connections: what every one is set to, and statements in the SQL that row sets write."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.rows.sql import Rows

__all__ = ["Statements", "connect", "conninfo"]

# What the URL does not say. A server that vanished without a word is noticed within seconds, and
# no statement or lock keeps a caller waiting for longer than callers wait.
_DEFAULTS = {
    "application_name": "ateapi",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
_LIMITS = (
    "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s"
    # Dates and numbers never travel as text here; times that are compared are the server's own.
    " -c timezone=UTC -c client_min_messages=warning"
)


def conninfo(url: PostgresUrl) -> str:
    given = {k: str(v) for k, v in conninfo_to_dict(url.text).items() if v is not None}
    options = f"{_LIMITS} {given.pop('options', '')}".rstrip()
    return make_conninfo(**{**_DEFAULTS, **given, "options": options})


def connect(url: PostgresUrl, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """Raises psycopg.OperationalError; its text names host, user and database, no password."""
    return psycopg.connect(conninfo(url), autocommit=autocommit)


class Statements:
    """One transaction's connection as row sets see it; see `store.rows.Sql`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        return self._connection.execute(_translated(statement), values)


@functools.lru_cache(maxsize=512)
def _translated(statement: str) -> bytes:
    return statement.replace("%", "%%").replace("?", "%s").encode()
