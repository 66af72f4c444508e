"""The database's schema: which one is there, and bringing it up to date."""

from __future__ import annotations

from typing import Any

import psycopg

from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.migrations import numbered
from atenet.ateapi.store.postgres.connection import connect
from atenet.errors import AteError

__all__ = ["check", "migrate"]

_PACKAGE = "atenet.ateapi.store.postgres"
# Two migrations at once take turns by this; "atea".
_LOCK = 0x61746561


def check(url: PostgresUrl) -> None:
    """Raises AteError unless the schema is exactly the one that this program works with."""
    wanted = len(numbered(_PACKAGE))
    try:
        with connect(url) as connection:
            found = _version(connection)
    except psycopg.OperationalError as e:
        raise _unusable(url, e) from None
    _refuse_newer(url, found, wanted)
    if found < wanted:
        state = f"has schema {found}; this program needs {wanted}" if found else "is empty"
        raise AteError(
            f"the store {url} {state}", hint="run `ateapi migrate --store ...` with the same URL"
        )


def migrate(url: PostgresUrl) -> tuple[int, int]:
    """All or nothing: the version before and after. Safe to repeat, and by several at once."""
    steps = numbered(_PACKAGE)
    try:
        with connect(url) as connection:
            # Another migration, or a step over a large table, may take its time.
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute("SET LOCAL lock_timeout = 0")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            found = _version(connection)
            _refuse_newer(url, found, len(steps))
            for number, statements in enumerate(steps[found:], start=found + 1):
                connection.execute(statements.encode())
                connection.execute("INSERT INTO atenet_schema (version) VALUES (%s)", (number,))
    except psycopg.OperationalError as e:
        raise _unusable(url, e) from None
    except psycopg.Error as e:
        raise AteError(
            f"the store {url} cannot be migrated: {_line(e)}",
            hint="the user must own the database, and it must be empty or an earlier atenet's",
        ) from None
    return found, len(steps)


def _version(connection: psycopg.Connection[Any]) -> int:
    present = connection.execute("SELECT to_regclass('atenet_schema') IS NOT NULL").fetchone()
    if present is None or not present[0]:
        return 0
    newest = connection.execute("SELECT max(version) FROM atenet_schema").fetchone()
    return int(newest[0] or 0) if newest else 0


def _refuse_newer(url: PostgresUrl, found: int, known: int) -> None:
    if found > known:
        raise AteError(
            f"the store {url} has schema {found}; this program knows up to {known}",
            hint="run the newer atenet that migrated it",
        )


def _unusable(url: PostgresUrl, error: psycopg.Error) -> AteError:
    return AteError(
        f"cannot use the store {url}: {_line(error)}",
        hint="is the server running, and may this user connect to that database?",
    )


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
