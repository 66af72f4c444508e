"""Retirement: suspends actors that nobody uses, and those on workers that are to become empty.

It only ever asks: whether an actor is in use its worker decides, so a request that came in
meanwhile keeps it where it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC
from typing import Any, NamedTuple

from atenet.ateapi.ending import ended
from atenet.ateapi.failure import CallError
from atenet.ateapi.store import BusyError, Transaction
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.operations import Operations
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Retirement"]

_log = logging.getLogger(__name__)
# An actor that could not be suspended a moment ago is left alone for as long.
_PAUSE_SECONDS = 2.0
# A heartbeat says how long ago; less than this is the way it took, not news.
_TRAVEL_SECONDS = 0.5
# Suspended at a time: their files go to the same disks and networks.
_PARALLEL = 32
_QUESTIONABLE = (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED)


class _Leave(NamedTuple):
    uid: str
    if_idle_ms: int  # 0: even if it is in use
    states: tuple[pb.ActorState, ...]


def _in_use(tx: Transaction, since: Mapping[str, float | None]) -> dict[str, float | None]:
    """Without paused actors: they are idle since their pause, and a heartbeat that was sent
    before it may come after it."""
    return {
        uid: at
        for uid, at in since.items()
        if (actor := tx.actors.by_uid(uid)) and actor.status.state != pb.ACTOR_STATE_PAUSED
    }


class Retirement:
    def __init__(self, context: Context, operations: Operations) -> None:
        self._context = context
        self._operations = operations
        self._slots = asyncio.Semaphore(_PARALLEL)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def heard(self, worker: pb.Worker, activity: Iterable[pb.ActorActivity]) -> None:
        """What one heartbeat of the worker's present incarnation said about its actors."""
        activity = list(activity)
        await self._note(worker, activity)
        quiet = {a.actor_uid: a.idle_ms for a in activity if not a.busy and a.idle_ms >= 1000}
        if not quiet:
            return
        for leave in await self._context.store.read(_overdue(worker, quiet)):
            self._start(leave, self._idle)

    async def _note(self, worker: pb.Worker, activity: list[pb.ActorActivity]) -> None:
        """Stores what is news, apart from the worker's row: claims and releases lock both."""
        now, name = self._context.clock(), worker.metadata.name
        heard = {a.actor_uid: None if a.busy else now - a.idle_ms / 1000 for a in activity}
        if not heard:
            return
        claims = await self._context.store.read(lambda tx: tx.workers.claims(name))
        known = {c.actor_uid: c.idle_since for c in claims if c.worker_epoch == worker.epoch}
        news = {
            uid: since
            for uid, since in heard.items()
            if uid in known and not _same(since, known[uid])
        }
        if news:
            await self._context.store.write(lambda tx: tx.workers.idle(name, _in_use(tx, news)))

    async def round(self) -> None:
        """Draining workers: idle actors leave at once, others when they are or time is up."""
        now = self._context.clock()
        for leave in await self._context.store.read(_draining(now, self._context.drain_wait)):
            self._start(leave, self._suspend)

    async def close(self) -> None:
        await ended(self._tasks.values())

    def _start(
        self, leave: _Leave, work: Callable[[_Leave], Coroutine[Any, Any, pb.Actor | None]]
    ) -> None:
        uid = leave.uid
        if uid in self._tasks or self._operations.busy_or_just_was(uid, _PAUSE_SECONDS):
            return
        task = asyncio.get_running_loop().create_task(self._run(leave, work))
        self._tasks[uid] = task
        task.add_done_callback(lambda _: self._tasks.pop(uid, None))

    async def _run(
        self, leave: _Leave, work: Callable[[_Leave], Coroutine[Any, Any, pb.Actor | None]]
    ) -> None:
        try:
            async with self._slots:
                await self._operations.run(leave.uid, lambda: work(leave))
        except (CallError, BusyError) as e:
            _log.info("not suspended", extra={"actor_uid": leave.uid, "error": str(e)})

    async def _suspend(self, leave: _Leave) -> pb.Actor | None:
        actor, _ = await self._context.look(leave.uid)
        if actor is None or actor.status.state not in leave.states:
            return None
        return await suspend(self._context, leave.uid, if_idle_ms=leave.if_idle_ms)

    async def _idle(self, leave: _Leave) -> pb.Actor | None:
        done = await self._suspend(leave)
        if done is not None:
            self._context.metrics.idled()
        return done


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < _TRAVEL_SECONDS


def _overdue(worker: pb.Worker, quiet: dict[str, int]) -> Callable[[Transaction], list[_Leave]]:
    """Those of these (uid: milliseconds) that have been idle for their template's idle_timeout."""

    def query(tx: Transaction) -> list[_Leave]:
        due = []
        for uid, idle_ms in quiet.items():
            actor = tx.actors.by_uid(uid)
            if actor is None or not _runs_on(actor, worker):
                continue
            ref = actor.actor_template
            template = tx.templates.get(ref.atespace, ref.name)
            if template is None or not template.HasField("idle_timeout"):
                continue
            limit = template.idle_timeout.ToMilliseconds()
            if idle_ms >= limit:
                due.append(_Leave(uid, limit, (pb.ACTOR_STATE_RUNNING,)))
        return due

    return query


def _runs_on(actor: pb.Actor, worker: pb.Worker) -> bool:
    assignment = actor.status.worker_assignment
    return (
        actor.status.state == pb.ACTOR_STATE_RUNNING
        and assignment.worker.name == worker.metadata.name
        and assignment.worker_epoch == worker.epoch
    )


def _draining(now: float, wait: float) -> Callable[[Transaction], list[_Leave]]:
    def query(tx: Transaction) -> list[_Leave]:
        leaving: list[_Leave] = []
        for row in tx.workers.draining():
            began = row.worker.metadata.update_time.ToDatetime(UTC).timestamp()
            over = now - began > wait
            leaving += [
                _Leave(claim.actor_uid, 0 if over else 1, _QUESTIONABLE)
                for claim in tx.workers.claims(row.worker.metadata.name)
                if over or claim.idle_since is not None
            ]
        return leaving

    return query
