"""The store's promises: whole transactions, honest books, refusal of what is not ours."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from atenet.ateapi import records
from atenet.ateapi.store import BusyError, HeldError, Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.store.sqlite import SqliteStore
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import actor


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = await SqliteStore.open(tmp_path / "ate.db")
    yield made
    await made.close()


def _worker(name: str = "w", slots: int = 2, epoch: int = 1) -> pb.Worker:
    made = pb.Worker(metadata=pb.ResourceMetadata(name=name), epoch=epoch)
    made.status.capacity.actors = slots
    made.status.state = pb.WORKER_STATE_ACTIVE
    return made


def _actor(name: str, state: pb.ActorState = pb.ACTOR_STATE_SUSPENDED) -> pb.Actor:
    made = actor(name)
    records.created(made.metadata, 1.0)
    made.status.state = state
    return made


async def test_a_failed_change_leaves_nothing(store: SqliteStore) -> None:
    def change(tx: Transaction) -> None:
        tx.atespaces.put(pb.Atespace(metadata=pb.ResourceMetadata(name="a")))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.write(change)
    assert await store.read(lambda tx: tx.atespaces.get("a")) is None


async def test_what_was_written_is_read_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "ate.db"
    made = _actor("a")
    first = await SqliteStore.open(path)
    await first.write(lambda tx: tx.actors.put(made))
    await first.close()
    assert path.stat().st_mode & 0o777 == 0o600
    second = await SqliteStore.open(path)
    assert await second.read(lambda tx: tx.actors.get("team-a", "a")) == made
    await second.close()


async def test_a_caller_that_leaves_does_not_stop_its_write(store: SqliteStore) -> None:
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="a"))
    writing = asyncio.ensure_future(store.write(lambda tx: tx.atespaces.put(space)))
    await asyncio.sleep(0)
    writing.cancel()
    await store.write(lambda _tx: None)
    assert await store.read(lambda tx: tx.atespaces.get("a")) == space


async def test_reads_cannot_write(store: SqliteStore) -> None:
    with pytest.raises(BusyError, match="readonly"):
        await store.read(lambda tx: tx.atespaces.delete("a"))


async def test_a_store_that_cannot_write_is_busy(store: SqliteStore) -> None:
    def full(_tx: Transaction) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with pytest.raises(BusyError):
        await store.write(full)


async def test_the_books_of_a_worker_are_its_claims(store: SqliteStore) -> None:
    def claim(tx: Transaction) -> None:
        tx.workers.put(_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u2", "w", 1))

    await store.write(claim)
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert row.allocated == row.worker.status.allocated.actors == 2
    assert await store.read(lambda tx: list(tx.workers.with_room(0))) == []
    for _ in range(2):
        await store.write(lambda tx: tx.workers.release("u1"))
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert row.allocated == 1


async def test_registering_again_keeps_the_claims(store: SqliteStore) -> None:
    def change(tx: Transaction) -> None:
        tx.workers.put(_worker(epoch=1), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.put(_worker(epoch=2, slots=5), heartbeat_at=2, lost=False)

    await store.write(change)
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert (row.allocated, row.worker.epoch) == (1, 2)
    assert await store.read(lambda tx: tx.workers.outlived()) == [ClaimRow("u1", "w", 1)]


async def test_claims_of_an_earlier_epoch_are_found_until_all_are_settled(
    store: SqliteStore,
) -> None:
    def change(tx: Transaction) -> None:
        tx.workers.put(_worker(epoch=1), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u2", "w", 1))
        tx.workers.put(_worker(epoch=2, slots=9), heartbeat_at=2, lost=False)
        tx.workers.put(_worker(epoch=2, slots=9), heartbeat_at=3, lost=False)
        tx.workers.claim(ClaimRow("u3", "w", 2))

    await store.write(change)
    for uid, left in (("u1", {"u2"}), ("u3", {"u2"}), ("u2", set())):
        await store.write(lambda tx, uid=uid: tx.workers.release(uid))
        found = await store.read(lambda tx: tx.workers.outlived())
        assert {c.actor_uid for c in found} == left


async def test_workers_with_room_come_with_the_largest_free_share_first(
    store: SqliteStore,
) -> None:
    def change(tx: Transaction) -> None:
        for name, slots, claims in (("a", 4, 2), ("b", 100, 10), ("c", 2, 2), ("d", 1, 0)):
            tx.workers.put(_worker(name, slots), heartbeat_at=1, lost=False)
            for i in range(claims):
                tx.workers.claim(ClaimRow(f"{name}{i}", name, 1))

    await store.write(change)
    found = await store.read(lambda tx: list(tx.workers.with_room(0)))
    assert [row.worker.metadata.name for row in found] == ["d", "b", "a"]


async def test_an_actor_claims_once(store: SqliteStore) -> None:
    def twice(tx: Transaction) -> None:
        tx.workers.put(_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u1", "w", 1))

    with pytest.raises(sqlite3.IntegrityError):
        await store.write(twice)


@pytest.mark.parametrize(
    ("heartbeat", "lost", "state", "room"),
    [
        (10, False, pb.WORKER_STATE_ACTIVE, True),
        (5, False, pb.WORKER_STATE_ACTIVE, False),
        (10, True, pb.WORKER_STATE_ACTIVE, False),
        (10, False, pb.WORKER_STATE_DRAINING, False),
    ],
)
async def test_only_live_active_workers_have_room(
    store: SqliteStore, heartbeat: float, lost: bool, state: pb.WorkerState, room: bool
) -> None:
    worker = _worker()
    worker.status.state = state
    await store.write(lambda tx: tx.workers.put(worker, heartbeat_at=heartbeat, lost=lost))
    assert bool(await store.read(lambda tx: list(tx.workers.with_room(6)))) is room


async def test_states_in_motion_are_found(store: SqliteStore) -> None:
    def change(tx: Transaction) -> None:
        tx.actors.put(_actor("a", pb.ACTOR_STATE_RESUMING))
        tx.actors.put(_actor("b", pb.ACTOR_STATE_RUNNING))
        tx.actors.put(_actor("c", pb.ACTOR_STATE_DELETING))

    await store.write(change)
    wanted = (pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_DELETING)
    found = await store.read(lambda tx: tx.actors.in_states(wanted, 10))
    assert {a.metadata.name for a in found} == {"a", "c"}


async def test_the_warm_read_sees_running_actors_only(store: SqliteStore) -> None:
    running = _actor("a", pb.ACTOR_STATE_RUNNING)

    def change(tx: Transaction) -> None:
        tx.actors.put(running)
        tx.actors.put(_actor("b"))

    await store.write(change)
    warm = await store.read(lambda tx: tx.actors.if_running("team-a", "a"))
    assert warm is not None
    assert pb.Actor.FromString(warm) == running
    assert await store.read(lambda tx: tx.actors.if_running("team-a", "b")) is None


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


async def test_an_operation_lock_is_exclusive_and_frees_itself(store: SqliteStore) -> None:
    with store.hold("u1"):
        with pytest.raises(HeldError), store.hold("u1"):
            pass
        with store.hold("u2"):
            pass
    with store.hold("u1"):
        pass


async def test_an_operation_lock_holds_against_another_control_plane(
    store: SqliteStore, tmp_path: Path
) -> None:
    other = await SqliteStore.open(tmp_path / "ate.db")
    with store.hold("u1"), pytest.raises(HeldError), other.hold("u1"):
        pass
    with other.hold("u1"), pytest.raises(HeldError), store.hold("u1"):
        pass
    await other.close()


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
            tx.actors.put(_actor(f"a{i}"))

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
