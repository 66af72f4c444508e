"""Rows of signing keys and of the audit log."""

from __future__ import annotations

from atenet.ateapi.store.interface import AuditEntry, AuditRow, SigningKey
from atenet.ateapi.store.rows.sql import Rows, Sql

__all__ = ["Audit", "SigningKeys"]

_ENTRIES = "SELECT number, at, subject, method, target, uid, trace_id FROM audit"


class SigningKeys:
    def __init__(self, sql: Sql) -> None:
        self._db = sql

    def all(self) -> list[SigningKey]:
        rows = self._db.execute(
            "SELECT kid, created_at, signs_from, private_key FROM signing_keys"
            " ORDER BY signs_from, kid"
        )
        return [SigningKey(*row) for row in rows]

    def add(self, key: SigningKey) -> None:
        self._db.execute(
            "INSERT INTO signing_keys (kid, created_at, signs_from, private_key)"
            " VALUES (?, ?, ?, ?)",
            (key.kid, key.created_at, key.signs_from, key.private_key),
        )

    def delete(self, kid: str) -> None:
        self._db.execute("DELETE FROM signing_keys WHERE kid = ?", (kid,))


class Audit:
    def __init__(self, sql: Sql) -> None:
        self._db = sql

    def append(self, entry: AuditEntry) -> None:
        self._db.execute(
            "INSERT INTO audit (at, subject, method, target, uid, trace_id)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (entry.at, entry.subject, entry.method, entry.target, entry.uid, entry.trace_id),
        )

    def page(self, after: int, limit: int, *, target: str = "") -> list[AuditRow]:
        if target:
            rows = self._db.execute(
                f"{_ENTRIES} WHERE target = ? AND number > ? ORDER BY number LIMIT ?",
                (target, after, limit),
            )
        else:
            rows = self._db.execute(
                f"{_ENTRIES} WHERE number > ? ORDER BY number LIMIT ?", (after, limit)
            )
        return _rows(rows)

    def last(self, limit: int, *, target: str = "") -> list[AuditRow]:
        if target:
            rows = self._db.execute(
                f"{_ENTRIES} WHERE target = ? ORDER BY number DESC LIMIT ?", (target, limit)
            )
        else:
            rows = self._db.execute(f"{_ENTRIES} ORDER BY number DESC LIMIT ?", (limit,))
        return _rows(rows)[::-1]

    def forget(self, before: float, limit: int) -> int:
        gone = self._db.execute(
            "DELETE FROM audit WHERE number IN"
            " (SELECT number FROM audit ORDER BY number LIMIT ?) AND at < ? RETURNING number",
            (limit, before),
        )
        return len(gone.fetchall())


def _rows(rows: Rows) -> list[AuditRow]:
    return [AuditRow(number, AuditEntry(*entry)) for number, *entry in rows]
