"""Rows of atespaces, actor templates and garbage."""

from __future__ import annotations

from atenet.ateapi.store.rows.sql import Locks, Sql
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Atespaces", "Garbage", "Templates"]


class Atespaces:
    def __init__(self, sql: Sql, locks: Locks) -> None:
        self._db = sql
        self._locks = locks

    def get(self, name: str) -> pb.Atespace | None:
        row = self._db.execute(
            f"SELECT body FROM atespaces WHERE name = ?{self._locks.share}", (name,)
        ).fetchone()
        return pb.Atespace.FromString(row[0]) if row else None

    def put(self, atespace: pb.Atespace) -> None:
        self._db.execute(
            "INSERT INTO atespaces (name, body) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            (atespace.metadata.name, atespace.SerializeToString()),
        )

    def delete(self, name: str) -> None:
        self._db.execute("DELETE FROM atespaces WHERE name = ?", (name,))

    def page(self, after: str, limit: int) -> list[pb.Atespace]:
        rows = self._db.execute(
            "SELECT body FROM atespaces WHERE name > ? ORDER BY name LIMIT ?", (after, limit)
        )
        return [pb.Atespace.FromString(body) for (body,) in rows]

    def in_use(self, name: str) -> str | None:
        # Whoever makes something in it holds it shared: wait for them, and see what they made.
        self._db.execute(f"SELECT 1 FROM atespaces WHERE name = ?{self._locks.update}", (name,))
        for table, what in (("actors", "actors"), ("templates", "actor templates")):
            query = f"SELECT 1 FROM {table} WHERE atespace = ? LIMIT 1"
            if self._db.execute(query, (name,)).fetchone():
                return what
        return None


class Templates:
    def __init__(self, sql: Sql, locks: Locks) -> None:
        self._db = sql
        self._locks = locks

    def get(self, atespace: str, name: str) -> pb.ActorTemplate | None:
        row = self._db.execute(
            f"SELECT body FROM templates WHERE atespace = ? AND name = ?{self._locks.share}",
            (atespace, name),
        ).fetchone()
        return pb.ActorTemplate.FromString(row[0]) if row else None

    def put(self, template: pb.ActorTemplate) -> None:
        meta = template.metadata
        self._db.execute(
            "INSERT INTO templates (atespace, name, body) VALUES (?, ?, ?)"
            " ON CONFLICT (atespace, name) DO UPDATE SET body = excluded.body",
            (meta.atespace, meta.name, template.SerializeToString()),
        )

    def delete(self, atespace: str, name: str) -> None:
        self._db.execute("DELETE FROM templates WHERE atespace = ? AND name = ?", (atespace, name))

    def page(self, atespace: str, after: tuple[str, str], limit: int) -> list[pb.ActorTemplate]:
        if atespace:
            query = "SELECT body FROM templates WHERE atespace = ? AND name > ?"
            key: tuple[str, ...] = (atespace, after[1])
        else:
            query = "SELECT body FROM templates WHERE (atespace, name) > (?, ?)"
            key = after
        rows = self._db.execute(f"{query} ORDER BY atespace, name LIMIT ?", (*key, limit))
        return [pb.ActorTemplate.FromString(body) for (body,) in rows]

    def in_use(self, atespace: str, name: str) -> bool:
        self._db.execute(
            f"SELECT 1 FROM templates WHERE atespace = ? AND name = ?{self._locks.update}",
            (atespace, name),
        )
        row = self._db.execute(
            "SELECT 1 FROM actors WHERE template_atespace = ? AND template_name = ? LIMIT 1",
            (atespace, name),
        ).fetchone()
        return row is not None


class Garbage:
    def __init__(self, sql: Sql) -> None:
        self._db = sql

    def add(self, uri: str) -> None:
        self._db.execute("INSERT INTO garbage (uri) VALUES (?) ON CONFLICT DO NOTHING", (uri,))

    def some(self, limit: int) -> list[str]:
        rows = self._db.execute("SELECT uri FROM garbage ORDER BY random() LIMIT ?", (limit,))
        return [uri for (uri,) in rows]

    def forget(self, uri: str) -> None:
        self._db.execute("DELETE FROM garbage WHERE uri = ?", (uri,))
