"""Rows of egress policies."""

from __future__ import annotations

from atenet.ateapi.store.news import News, Topic
from atenet.ateapi.store.rows.sql import Locks, Sql
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Policies"]


class Policies:
    def __init__(self, sql: Sql, locks: Locks, news: dict[News, None]) -> None:
        self._db = sql
        self._locks = locks
        self._news = news

    def get(self, actor_uid: str) -> pb.EgressPolicy | None:
        row = self._db.execute(
            f"SELECT body FROM policies WHERE actor_uid = ?{self._locks.update}", (actor_uid,)
        ).fetchone()
        return pb.EgressPolicy.FromString(row[0]) if row else None

    def put(self, actor_uid: str, policy: pb.EgressPolicy) -> None:
        self._news[News(Topic.POLICY, actor_uid)] = None
        self._db.execute(
            "INSERT INTO policies (actor_uid, body) VALUES (?, ?)"
            " ON CONFLICT (actor_uid) DO UPDATE SET body = excluded.body",
            (actor_uid, policy.SerializeToString()),
        )

    def delete(self, actor_uid: str) -> None:
        self._news[News(Topic.POLICY, actor_uid)] = None
        self._db.execute("DELETE FROM policies WHERE actor_uid = ?", (actor_uid,))
