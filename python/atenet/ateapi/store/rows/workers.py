"""Rows of workers and of the slots claimed on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from typing import Any

from atenet.ateapi.store.interface import CPU, MEMORY, ClaimRow, WorkerRow, WorkerTotals
from atenet.ateapi.store.news import News, Topic
from atenet.ateapi.store.rows.sql import Locks, OutrunError, Sql
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Workers"]

_SELECT = "SELECT body, allocated, heartbeat_at, lost, allocated_cpu, allocated_memory FROM workers"
_CLAIM = "SELECT actor_uid, worker, worker_epoch, cpu_milli, memory_bytes, idle_since FROM claims"


class Workers:
    def __init__(self, sql: Sql, locks: Locks, news: dict[News, None]) -> None:
        self._db = sql
        self._locks = locks
        self._news = news

    def get(self, name: str) -> WorkerRow | None:
        row = self._db.execute(f"{_SELECT} WHERE name = ?{self._locks.update}", (name,)).fetchone()
        return _row(row) if row else None

    def put(self, worker: pb.Worker, *, heartbeat_at: float, lost: bool) -> None:
        active = worker.status.state == pb.WORKER_STATE_ACTIVE
        if not lost:  # the loss of one is seen by every control plane's own watch
            self._news[News(Topic.WORKER, worker.metadata.name)] = None
        if active and not lost:
            self._news[News(Topic.CAPACITY, worker.metadata.name)] = None
        self._db.execute(
            "INSERT INTO workers"
            " (name, epoch, active, slots, cpu, memory, heartbeat_at, lost, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET unsettled = CASE WHEN workers.unsettled = 1"
            " OR (workers.allocated > 0 AND workers.epoch <> excluded.epoch) THEN 1 ELSE 0 END,"
            " epoch = excluded.epoch,"
            " active = excluded.active, slots = excluded.slots,"
            " cpu = excluded.cpu, memory = excluded.memory,"
            " heartbeat_at = excluded.heartbeat_at, lost = excluded.lost, body = excluded.body",
            (
                worker.metadata.name,
                worker.epoch,
                int(active),
                worker.status.capacity.actors,
                *_capacity(worker),
                heartbeat_at,
                int(lost),
                worker.SerializeToString(),
            ),
        )

    def heartbeat(self, name: str, at: float) -> None:
        self._db.execute("UPDATE workers SET heartbeat_at = ?, lost = 0 WHERE name = ?", (at, name))

    def heartbeat_all(self, at: float) -> None:
        self._db.execute("UPDATE workers SET heartbeat_at = ? WHERE lost = 0", (at,))

    def delete(self, name: str) -> None:
        self._db.execute("DELETE FROM workers WHERE name = ?", (name,))

    def page(self, after: str, limit: int) -> list[WorkerRow]:
        rows = self._db.execute(f"{_SELECT} WHERE name > ? ORDER BY name LIMIT ?", (after, limit))
        return [_row(r) for r in rows]

    def with_room(self, heartbeat_after: float, *, pack: bool = False) -> Iterator[WorkerRow]:
        order = "DESC" if pack else "ASC"
        rows = self._db.execute(
            f"{_SELECT} WHERE active = 1 AND lost = 0 AND allocated < slots"
            f" AND heartbeat_at > ? ORDER BY CAST(allocated AS REAL) / slots {order}, name",
            (heartbeat_after,),
        )
        found = (_row(r) for r in rows)
        held = self._locks.held
        return iter(sorted(found, key=lambda r: r.worker.metadata.name in held)) if held else found

    def on_node(self, node: str) -> list[WorkerRow]:
        found = (_row(r) for r in self._db.execute(f"{_SELECT} ORDER BY name"))
        return [row for row in found if row.worker.node_name == node]

    def silent(self, heartbeat_before: float) -> list[WorkerRow]:
        rows = self._db.execute(
            f"{_SELECT} WHERE lost = 1 OR heartbeat_at < ? ORDER BY name", (heartbeat_before,)
        )
        return [_row(r) for r in rows]

    def totals(self) -> WorkerTotals:
        row = self._db.execute(
            "SELECT coalesce(sum(CASE WHEN lost = 0 AND active = 1 THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(CASE WHEN lost = 0 AND active = 0 THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(lost), 0),"
            " coalesce(sum(CASE WHEN lost = 0 AND active = 1 THEN slots ELSE 0 END), 0),"
            " coalesce(sum(allocated), 0) FROM workers"
        ).fetchone()
        return WorkerTotals(*map(int, row))

    def claim(self, claim: ClaimRow) -> None:
        if self._locks.skip:
            self._take(claim)
        self._db.execute(
            "INSERT INTO claims"
            " (actor_uid, worker, worker_epoch, cpu_milli, memory_bytes, idle_since)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            astuple(claim),
        )
        self._db.execute(
            "UPDATE workers SET allocated = allocated + 1, allocated_cpu = allocated_cpu + ?,"
            " allocated_memory = allocated_memory + ? WHERE name = ?",
            (claim.cpu_milli, claim.memory_bytes, claim.worker),
        )

    def _take(self, claim: ClaimRow) -> None:
        """Locks the worker's row, if the room that was seen is still there once it is locked."""
        lock = self._locks.update if claim.worker in self._locks.held else self._locks.skip
        row = self._db.execute(
            "SELECT 1 FROM workers WHERE name = ? AND epoch = ? AND active = 1 AND lost = 0"
            " AND allocated < slots AND (cpu IS NULL OR allocated_cpu + ? <= cpu)"
            f" AND (memory IS NULL OR allocated_memory + ? <= memory){lock}",
            (claim.worker, claim.worker_epoch, claim.cpu_milli, claim.memory_bytes),
        ).fetchone()
        if row is None:
            raise OutrunError(claim.worker)

    def release(self, actor_uid: str) -> None:
        freed = self._db.execute(
            "DELETE FROM claims WHERE actor_uid = ? RETURNING worker, cpu_milli, memory_bytes",
            (actor_uid,),
        ).fetchall()
        for worker, cpu, memory in freed:
            self._news[News(Topic.CAPACITY, worker)] = None
            self._db.execute(
                "UPDATE workers SET allocated = allocated - 1, allocated_cpu = allocated_cpu - ?,"
                " allocated_memory = allocated_memory - ?,"
                " unsettled = CASE WHEN unsettled = 1 AND EXISTS"
                " (SELECT 1 FROM claims WHERE claims.worker = workers.name"
                " AND claims.worker_epoch <> workers.epoch) THEN 1 ELSE 0 END WHERE name = ?",
                (cpu, memory, worker),
            )

    def claim_of(self, actor_uid: str) -> ClaimRow | None:
        row = self._db.execute(f"{_CLAIM} WHERE actor_uid = ?", (actor_uid,)).fetchone()
        return ClaimRow(*row) if row else None

    def claims(self, worker: str) -> list[ClaimRow]:
        rows = self._db.execute(f"{_CLAIM} WHERE worker = ? ORDER BY actor_uid", (worker,))
        return [ClaimRow(*r) for r in rows]

    def idle(self, worker: str, since: Mapping[str, float | None]) -> None:
        for uid, at in sorted(since.items()):  # in one order, so that two do not lock each other
            self._db.execute(
                "UPDATE claims SET idle_since = ? WHERE actor_uid = ? AND worker = ?",
                (at, uid, worker),
            )

    def idlest(self, idle_before: float, heartbeat_after: float, limit: int) -> list[ClaimRow]:
        rows = self._db.execute(
            f"{_CLAIM} JOIN workers ON workers.name = claims.worker"
            " AND workers.epoch = claims.worker_epoch"
            " WHERE idle_since < ? AND active = 1 AND lost = 0 AND heartbeat_at > ?"
            " ORDER BY idle_since LIMIT ?",
            (idle_before, heartbeat_after, limit),
        )
        return [ClaimRow(*r) for r in rows]

    def draining(self) -> list[WorkerRow]:
        rows = self._db.execute(
            f"{_SELECT} WHERE active = 0 AND lost = 0 AND allocated > 0 ORDER BY name"
        )
        return [_row(r) for r in rows]

    def outlived(self) -> list[ClaimRow]:
        rows: Iterable[Any] = self._db.execute(
            "SELECT actor_uid, worker, worker_epoch, cpu_milli, memory_bytes, idle_since"
            " FROM workers JOIN claims ON claims.worker = workers.name"
            " WHERE workers.unsettled = 1 AND workers.epoch <> claims.worker_epoch"
        )
        return [ClaimRow(*r) for r in rows]


def _capacity(worker: pb.Worker) -> tuple[int | None, int | None]:
    """What it has of cpu and memory; None where it does not say."""
    given = dict(worker.status.capacity.resources)
    return given.get(CPU), given.get(MEMORY)


def _row(row: tuple[Any, ...]) -> WorkerRow:
    body, allocated, heartbeat_at, lost, cpu, memory = row
    worker = pb.Worker.FromString(body)
    worker.status.ClearField("allocated")
    worker.status.allocated.actors = allocated
    for name, asked in ((CPU, cpu), (MEMORY, memory)):
        if asked:
            worker.status.allocated.resources[name] = asked
    return WorkerRow(worker, allocated, heartbeat_at, bool(lost), cpu, memory)
