"""Rows of actors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atenet.ateapi.store.news import ActorNews, News, Topic
from atenet.ateapi.store.rows.sql import Locks, Sql
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Actors"]

# To an assignment, or in one.
_ON_THE_WAY = (pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_RUNNING)


class Actors:
    def __init__(self, sql: Sql, locks: Locks, news: dict[News, None]) -> None:
        self._db = sql
        self._locks = locks
        self._news = news

    def get(self, atespace: str, name: str) -> pb.Actor | None:
        row = self._db.execute(
            f"SELECT body FROM actors WHERE atespace = ? AND name = ?{self._locks.update}",
            (atespace, name),
        ).fetchone()
        return pb.Actor.FromString(row[0]) if row else None

    def by_uid(self, uid: str) -> pb.Actor | None:
        row = self._db.execute(
            f"SELECT body FROM actors WHERE uid = ?{self._locks.update}", (uid,)
        ).fetchone()
        return pb.Actor.FromString(row[0]) if row else None

    def if_running(self, atespace: str, name: str) -> bytes | None:
        row = self._db.execute(
            "SELECT body FROM actors WHERE atespace = ? AND name = ? AND state = 2",
            (atespace, name),
        ).fetchone()
        return row[0] if row else None

    def put(self, actor: pb.Actor) -> None:
        meta, template = actor.metadata, actor.actor_template
        # Not where it was, or at rest: a version of 1 was nowhere before.
        if meta.version > 1 and actor.status.state not in _ON_THE_WAY:
            told = ActorNews(meta.atespace, meta.name, meta.uid, meta.version)
            self._news[News(Topic.ACTOR, told.subject)] = None
        self._db.execute(
            "INSERT INTO actors"
            " (uid, atespace, name, state, template_atespace, template_name, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (uid) DO UPDATE SET state = excluded.state, body = excluded.body,"
            " template_atespace = excluded.template_atespace,"
            " template_name = excluded.template_name",
            (
                meta.uid,
                meta.atespace,
                meta.name,
                actor.status.state,
                template.atespace,
                template.name,
                actor.SerializeToString(),
            ),
        )

    def delete(self, uid: str) -> None:
        self._db.execute("DELETE FROM actors WHERE uid = ?", (uid,))

    def page(self, atespace: str, after: tuple[str, str], limit: int) -> list[pb.Actor]:
        if atespace:
            query = "SELECT body FROM actors WHERE atespace = ? AND name > ?"
            key: tuple[str, ...] = (atespace, after[1])
        else:
            query = "SELECT body FROM actors WHERE (atespace, name) > (?, ?)"
            key = after
        rows = self._db.execute(f"{query} ORDER BY atespace, name LIMIT ?", (*key, limit))
        return _actors(rows)

    def in_states(self, states: Sequence[pb.ActorState], limit: int) -> list[pb.Actor]:
        wanted = ", ".join(str(int(state)) for state in states)
        # The first condition repeats the partial index's, so that it can be used.
        query = f"SELECT body FROM actors WHERE state IN (1, 3, 5, 8, 9) AND state IN ({wanted})"
        return _actors(self._db.execute(f"{query} ORDER BY random() LIMIT ?", (limit,)))

    def on_worker(self, worker: str, after: str, limit: int) -> list[pb.Actor]:
        rows = self._db.execute(
            "SELECT actors.body FROM claims JOIN actors ON actors.uid = claims.actor_uid"
            " WHERE claims.worker = ? AND claims.actor_uid > ?"
            " ORDER BY claims.actor_uid LIMIT ?",
            (worker, after, limit),
        )
        return _actors(rows)


def _actors(rows: Iterable[tuple[bytes]]) -> list[pb.Actor]:
    return [pb.Actor.FromString(body) for (body,) in rows]
