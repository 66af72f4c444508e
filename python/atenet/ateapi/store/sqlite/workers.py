"""Rows of workers and of the slots claimed on them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from atenet.ateapi.store.interface import ClaimRow, WorkerRow
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Workers"]

_SELECT = "SELECT body, allocated, heartbeat_at, lost FROM workers"


class Workers:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def get(self, name: str) -> WorkerRow | None:
        row = self._db.execute(f"{_SELECT} WHERE name = ?", (name,)).fetchone()
        return _row(row) if row else None

    def put(self, worker: pb.Worker, *, heartbeat_at: float, lost: bool) -> None:
        active = worker.status.state == pb.WORKER_STATE_ACTIVE
        self._db.execute(
            "INSERT INTO workers (name, epoch, active, slots, heartbeat_at, lost, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET unsettled ="
            " unsettled OR (allocated > 0 AND epoch <> excluded.epoch), epoch = excluded.epoch,"
            " active = excluded.active, slots = excluded.slots,"
            " heartbeat_at = excluded.heartbeat_at, lost = excluded.lost, body = excluded.body",
            (
                worker.metadata.name,
                worker.epoch,
                active,
                worker.status.capacity.actors,
                heartbeat_at,
                lost,
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

    def with_room(self, heartbeat_after: float) -> Iterator[WorkerRow]:
        rows = self._db.execute(
            f"{_SELECT} WHERE active = 1 AND lost = 0 AND allocated < slots"
            " AND heartbeat_at > ? ORDER BY CAST(allocated AS REAL) / slots, name",
            (heartbeat_after,),
        )
        return (_row(r) for r in rows)

    def silent(self, heartbeat_before: float) -> list[WorkerRow]:
        rows = self._db.execute(
            f"{_SELECT} WHERE lost = 1 OR heartbeat_at < ? ORDER BY name", (heartbeat_before,)
        )
        return [_row(r) for r in rows]

    def claim(self, claim: ClaimRow) -> None:
        self._db.execute(
            "INSERT INTO claims (actor_uid, worker, worker_epoch) VALUES (?, ?, ?)",
            (claim.actor_uid, claim.worker, claim.worker_epoch),
        )
        self._db.execute(
            "UPDATE workers SET allocated = allocated + 1 WHERE name = ?", (claim.worker,)
        )

    def release(self, actor_uid: str) -> None:
        freed = self._db.execute(
            "DELETE FROM claims WHERE actor_uid = ? RETURNING worker", (actor_uid,)
        ).fetchall()
        for (worker,) in freed:
            self._db.execute(
                "UPDATE workers SET allocated = allocated - 1, unsettled = unsettled AND EXISTS"
                " (SELECT 1 FROM claims WHERE claims.worker = workers.name"
                " AND claims.worker_epoch <> workers.epoch) WHERE name = ?",
                (worker,),
            )

    def claims(self, worker: str) -> list[ClaimRow]:
        rows = self._db.execute(
            "SELECT actor_uid, worker, worker_epoch FROM claims WHERE worker = ?"
            " ORDER BY actor_uid",
            (worker,),
        )
        return [ClaimRow(*r) for r in rows]

    def outlived(self) -> list[ClaimRow]:
        rows: Iterable[Any] = self._db.execute(
            "SELECT actor_uid, worker, worker_epoch FROM workers"
            " JOIN claims ON claims.worker = workers.name"
            " WHERE workers.unsettled = 1 AND workers.epoch <> claims.worker_epoch"
        )
        return [ClaimRow(*r) for r in rows]


def _row(row: tuple[Any, ...]) -> WorkerRow:
    body, allocated, heartbeat_at, lost = row
    worker = pb.Worker.FromString(body)
    worker.status.allocated.actors = allocated
    return WorkerRow(worker, allocated, heartbeat_at, bool(lost))
