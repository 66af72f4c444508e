"""What the store keeps beside actors: their policies, signing keys, and the audit log."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from atenet.ateapi.store import (
    AuditEntry,
    ContradictionError,
    SigningKey,
    Store,
    Transaction,
    WorkerTotals,
)
from atenet.ateapi.store.interface import ClaimRow
from atenet.proto import ateapi_pb2 as pb

from tests.support.postgres import PostgresServer
from tests.support.stores import new_actor, new_worker, opened


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with opened(store_url) as made:
        yield made


def _entry(at: float, target: str = "actor/a/b") -> AuditEntry:
    return AuditEntry(at, "spiffe://x", "Control/CreateActor", target, "uid-1", "")


async def test_a_policy_goes_with_its_actor(store: Store) -> None:
    made = new_actor("a")
    uid = made.metadata.uid
    policy = pb.EgressPolicy(rules=[pb.EgressRule(http=pb.HTTPRule(hostnames=["a.example"]))])

    def change(tx: Transaction) -> None:
        tx.actors.put(made)
        tx.policies.put(uid, pb.EgressPolicy())
        tx.policies.put(uid, policy)
        tx.actors.put(made)

    await store.write(change)
    assert await store.read(lambda tx: tx.policies.get(uid)) == policy
    await store.write(lambda tx: tx.actors.delete(uid))
    assert await store.read(lambda tx: tx.policies.get(uid)) is None


async def test_workers_and_slots_are_summed_up(store: Store) -> None:
    assert await store.read(lambda tx: tx.workers.totals()) == WorkerTotals(0, 0, 0, 0, 0)
    draining = new_worker("c", slots=5)
    draining.status.state = pb.WORKER_STATE_DRAINING

    def change(tx: Transaction) -> None:
        tx.workers.put(new_worker("a", slots=3), heartbeat_at=1, lost=False)
        tx.workers.put(new_worker("b", slots=4), heartbeat_at=1, lost=True)
        tx.workers.put(draining, heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "a", 1))

    await store.write(change)
    assert await store.read(lambda tx: tx.workers.totals()) == WorkerTotals(1, 1, 1, 3, 1)


async def test_signing_keys_come_in_the_order_in_which_they_sign(store: Store) -> None:
    keys = [SigningKey(kid, 1.0, at, b"pem") for kid, at in (("a", 3.0), ("b", 1.0), ("c", 2.0))]
    for key in keys:
        await store.write(lambda tx, key=key: tx.signing_keys.add(key))
    await store.write(lambda tx: tx.signing_keys.delete("c"))
    assert await store.read(lambda tx: tx.signing_keys.all()) == [keys[1], keys[0]]
    assert "pem" not in repr(keys)


async def test_the_audit_log_is_read_in_order_and_by_target(store: Store) -> None:
    now = time.time()
    for i, target in enumerate(("actor/a/b", "worker/w", "actor/a/b")):
        await store.write(lambda tx, i=i, t=target: tx.audit.append(_entry(now + i, t)))
    rows = await store.read(lambda tx: tx.audit.page(0, 2))
    assert [row.entry.target for row in rows] == ["actor/a/b", "worker/w"]
    rest = await store.read(lambda tx: tx.audit.page(rows[-1].number, 2))
    assert [row.entry for row in rest] == [_entry(now + 2)]
    newest = await store.read(lambda tx: tx.audit.last(2))
    assert [row.entry.at for row in newest] == [now + 1, now + 2]
    newest = await store.read(lambda tx: tx.audit.last(1, target="actor/a/b"))
    assert [row.entry.at for row in newest] == [now + 2]
    only = await store.read(lambda tx: tx.audit.page(0, 10, target="worker/w"))
    assert [row.entry.at for row in only] == [now + 1]


async def test_an_audit_entry_is_not_removed_within_a_day(store: Store) -> None:
    now = time.time()
    await store.write(lambda tx: tx.audit.append(_entry(now - 100_000)))
    await store.write(lambda tx: tx.audit.append(_entry(now - 80_000)))
    assert await store.write(lambda tx: tx.audit.forget(now - 90_000, 10)) == 1
    with pytest.raises(ContradictionError, match="for a day"):
        await store.write(lambda tx: tx.audit.forget(now, 10))
    left = await store.read(lambda tx: tx.audit.page(0, 10))
    assert [row.entry.at for row in left] == [now - 80_000]


_CHANGE = "UPDATE audit SET subject = 'somebody else'"


async def test_an_audit_entry_is_not_changed_in_sqlite(tmp_path: Path) -> None:
    async with opened(str(tmp_path / "ate.db")) as store:
        await store.write(lambda tx: tx.audit.append(_entry(time.time())))
    connection = sqlite3.connect(tmp_path / "ate.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(_CHANGE)
    connection.close()


async def test_an_audit_entry_is_not_changed_in_postgresql(postgres: PostgresServer) -> None:
    url = postgres.database()
    async with opened(url) as store:
        await store.write(lambda tx: tx.audit.append(_entry(time.time())))
    for statement in (_CHANGE, "TRUNCATE audit"):
        with psycopg.connect(url) as connection, pytest.raises(psycopg.IntegrityError):
            connection.execute(statement)
