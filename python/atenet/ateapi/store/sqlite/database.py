"""Opening the database file: is it ours, is it whole, is its schema the newest we know."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from atenet.ateapi.store.migrations import numbered
from atenet.errors import AteError

__all__ = ["APPLICATION_ID", "connect", "prepare"]

APPLICATION_ID = 0x61746561  # "atea", in the file's header
# Reading all of a bigger file at each start would cost seconds; damage there shows on use.
_CHECKED_BYTES = 64 * 1024 * 1024


def prepare(path: Path) -> tuple[int, int]:
    """Makes the file (0600) or checks it, and brings its schema up to date: from, to.

    Raises AteError when it is damaged, belongs to another program, or is newer than this one.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as e:
        raise AteError(
            f"cannot open the store {path}: {e.strerror}",
            hint="the directory must exist and be writable",
        ) from e
    try:
        connection = connect(path)
        try:
            _check(connection, path)
            return _migrate(connection, path)
        finally:
            connection.close()
    except sqlite3.OperationalError as e:
        raise AteError(
            f"cannot use the store {path}: {e}", hint="is another process holding it locked?"
        ) from e
    except sqlite3.DatabaseError as e:
        raise _damaged(path, str(e)) from e


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are begun by name."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    # Another control plane on the same file may be writing; each write is well under 1 ms.
    connection.execute("PRAGMA busy_timeout = 10000")
    connection.execute("PRAGMA journal_mode = WAL")
    # With WAL this survives any kill -9; a power cut may lose the last moments, never the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if found != APPLICATION_ID and tables:
        raise AteError(
            f"{path} is a database of another program",
            hint="give a file of its own with --store",
        )
    if path.stat().st_size <= _CHECKED_BYTES:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise _damaged(path, verdict)


def _migrate(connection: sqlite3.Connection, path: Path) -> tuple[int, int]:
    steps = numbered("atenet.ateapi.store.sqlite")
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(steps):
            raise AteError(
                f"{path} has schema {version}; this program knows up to {len(steps)}",
                hint="run the newer atenet that wrote it, or restore an older backup",
            )
        for sql in steps[version:]:
            for statement in _statements(sql):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
        return version, len(steps)
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _statements(sql: str) -> list[str]:
    # executescript would commit the transaction that makes a migration all or nothing.
    statements, rest = [], ""
    for line in sql.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            statements.append(rest)
            rest = ""
    return statements


def _damaged(path: Path, why: str) -> AteError:
    return AteError(
        f"the store {path} is damaged: {why}",
        hint="restore it from a backup; actors' snapshots are kept apart from it",
    )
