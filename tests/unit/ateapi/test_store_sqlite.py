"""What is SQLite's own: the file, its schema, its plans."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from atenet.ateapi.store import BusyError, Transaction
from atenet.ateapi.store.sqlite import SqliteStore
from atenet.errors import AteError

from tests.support.stores import new_actor


async def test_the_file_is_the_owner_s_alone(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path / "ate.db")).close()
    assert (tmp_path / "ate.db").stat().st_mode & 0o777 == 0o600


async def test_a_store_that_cannot_write_is_busy(tmp_path: Path) -> None:
    def full(_tx: Transaction) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    store = await SqliteStore.open(tmp_path / "ate.db")
    with pytest.raises(BusyError):
        await store.write(full)
    await store.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT body FROM actors WHERE atespace = 'a' AND name = 'b' AND state = 2",
        "SELECT body FROM actors WHERE atespace = 'a' AND name > 'b' ORDER BY atespace, name",
        "SELECT body FROM actors WHERE state IN (1, 3, 5, 8, 9) AND state IN (1, 3)",
        "SELECT 1 FROM actors WHERE template_atespace = 'a' AND template_name = 'b' LIMIT 1",
    ],
)
async def test_no_query_scans_all_actors(tmp_path: Path, query: str) -> None:
    await (await SqliteStore.open(tmp_path / "ate.db")).close()
    connection = sqlite3.connect(tmp_path / "ate.db")
    plan = connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
    connection.close()
    assert all("SEARCH" in step[3] or "USING INDEX" in step[3] for step in plan), plan


async def _refused(path: Path) -> AteError:
    with pytest.raises(AteError) as caught:
        await SqliteStore.open(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ate.db"
    path.write_bytes(b"hello, world " * 100)
    assert "damaged" in (await _refused(path)).message


async def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ate.db"
    store = await SqliteStore.open(path)

    def change(tx: Transaction) -> None:
        for i in range(500):
            tx.actors.put(new_actor(f"a{i}"))

    await store.write(change)
    await store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in (await _refused(path)).message


async def test_another_program_s_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ate.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    assert "another program" in (await _refused(path)).message


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ate.db"
    await (await SqliteStore.open(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert "schema 999" in (await _refused(path)).message


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert "No such file" in (await _refused(tmp_path / "nowhere" / "ate.db")).message
