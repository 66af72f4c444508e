"""The watch: notices lost workers and cut workflows, and has their actors recovered.

It compares what is stored with what is heard, once a second, and may be stopped and started at
any time: every round finds again what the last one left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import grpc

from atenet.ateapi import held, records
from atenet.ateapi.ending import ended
from atenet.ateapi.failure import CallError
from atenet.ateapi.hosting import HostingLedger
from atenet.ateapi.nodes import NodeError
from atenet.ateapi.retirement import Retirement
from atenet.ateapi.store import BusyError, Transaction, WorkerRow, every_worker
from atenet.ateapi.store.news import News, Topic
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.operations import OperationHeldError, Operations
from atenet.ateapi.workflows.recover import recover
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2 as node_pb

__all__ = ["Watch"]

_log = logging.getLogger(__name__)
_ROUND_SECONDS = 1.0
_IN_MOTION = (
    pb.ACTOR_STATE_RESUMING,
    pb.ACTOR_STATE_SUSPENDING,
    pb.ACTOR_STATE_PAUSING,
    pb.ACTOR_STATE_REVERTING,
    pb.ACTOR_STATE_DELETING,
)
# One round looks at this many; the rest waits for the next.
_BATCH = 256
# Recoveries at a time: a node that lost all its workers must not be stormed.
_PARALLEL = 32
# A caller whose operation could not end now retries by itself; the watch lets it go first.
_CALLER_FIRST_SECONDS = 10.0
# Longer than any heartbeat is under way.
_HEARTBEAT_TRAVELS_SECONDS = 5.0
_FIRST_BACKOFF = 1.0
_LAST_BACKOFF = 15.0


@dataclass
class _Backoff:
    not_before: float = 0.0
    delay: float = _FIRST_BACKOFF


class Watch:
    def __init__(self, context: Context, operations: Operations) -> None:
        self._context = context
        self._operations = operations
        self.retirement = Retirement(context, operations)
        self._ledger = HostingLedger()
        self._backoff: dict[str, _Backoff] = {}
        self._slots = asyncio.Semaphore(_PARALLEL)
        self._tasks: set[asyncio.Task[None]] = set()
        self._recovering: set[str] = set()
        self._doubted: set[str] = set()

    async def started(self) -> None:
        """While no control plane was there no worker could be heard: all get their full time."""
        if not await self._context.store.alone():
            return
        now = self._context.clock()
        await self._context.store.write(lambda tx: tx.workers.heartbeat_all(now))

    async def run(self) -> None:
        """Rounds for ever; a registration of a new incarnation starts one early."""
        while True:
            try:
                await self.round()
            except BusyError as e:
                _log.warning("the store is busy", extra={"error": str(e)})
            except Exception:  # noqa: BLE001 - one bad round must not end all watching
                _log.exception("a round of the watch failed")
            wait = self._context.registered.wait()
            try:
                async with asyncio.timeout(_ROUND_SECONDS):
                    await wait
            except TimeoutError:
                continue
            self._context.registered.clear()

    async def round(self) -> None:
        """One comparison. Recoveries run on after it returns."""
        store, now = self._context.store, self._context.clock()
        silent = await store.read(lambda tx: tx.workers.silent(self._context.heard_after))
        for row in silent:
            if row.lost:
                await self._silent(row)
            else:
                self._doubt(row)
        outlived = await store.read(lambda tx: tx.workers.outlived())
        for claim in outlived:
            self._recover(claim.actor_uid)
        moving = await store.read(lambda tx: tx.actors.in_states(_IN_MOTION, _BATCH))
        for actor in moving:
            if not self._operations.busy_or_just_was(actor.metadata.uid, _CALLER_FIRST_SECONDS):
                self._recover(actor.metadata.uid)
        await self.retirement.round()
        self._forget_old_backoffs(now)

    async def hosted(self, worker: pb.Worker, uids: set[str], *, stopping: bool) -> None:
        """Takes in what one heartbeat of the worker's present incarnation said it hosts.

        `stopping`: it takes no starts any more, so what it does not name is gone for certain.
        """
        name = worker.metadata.name
        claimed, running = await self._context.store.read(_claims_of(worker))
        before = self._context.clock() - _HEARTBEAT_TRAVELS_SECONDS
        settled = {uid for uid, since in running.items() if stopping or since < before}
        found = self._ledger.observe(
            name, hosted=uids, running=running.keys(), claimed=claimed, settled=settled
        )
        for uid in found.missing:
            self._recover(uid, workload_gone=True)
        for uid in found.strays:
            self._spawn(self._end_stray(worker, uid))

    async def held(self, worker: pb.Worker, snapshots: Iterable[pb.HeldSnapshot]) -> None:
        """Takes in what pauses have left on the worker's node; what no record names is removed."""
        for stray in await self._context.store.read(held.strays(worker.node_name, snapshots)):
            self._spawn(held.forget(self._context, self._operations, worker, stray))

    def template_deleted(self, uid: str) -> None:
        """Nodes remove what they keep for it; one that is not there does when it is unused for long."""
        self._spawn(self._forget_template(uid))

    async def _forget_template(self, uid: str) -> None:
        with contextlib.suppress(BusyError):
            for endpoint in await self._context.store.read(_endpoints):
                try:
                    await self._context.nodes.forget_template(endpoint, uid)
                except NodeError as e:
                    _log.info("a golden image stays for now", extra={"error": str(e)})

    def heard(self, news: News) -> None:
        """Another control plane may have taken in a registration: it is looked at at once."""
        if news.topic in (Topic.WORKER, Topic.ANYTHING):
            self._context.registered.set()

    def incarnation(self, worker: str) -> None:
        """A worker came up anew: what its last incarnation held is looked at at once."""
        self._ledger.forget(worker)
        self._context.registered.set()

    async def close(self) -> None:
        await self.retirement.close()
        await ended(self._tasks)

    def _doubt(self, row: WorkerRow) -> None:
        """Asks its node whether a silent worker lives, beside the round: an agent may hang."""
        name = row.worker.metadata.name
        if name not in self._doubted:
            self._doubted.add(name)
            self._spawn(self._settle(row))

    async def _settle(self, row: WorkerRow) -> None:
        name = row.worker.metadata.name
        try:
            if not await self._may_live(row):
                await self._silent(row)
        except BusyError as e:
            _log.warning("the store is busy", extra={"error": str(e)})
        finally:
            self._doubted.discard(name)

    async def _may_live(self, row: WorkerRow) -> bool:
        """Whether a silent worker may be alive with all its actors: heartbeats come through the node's
        agent, and stop while that is restarted. When the agent is silent too, the node's time counts."""
        worker = row.worker
        if not worker.node_endpoint:
            return False
        try:
            return await self._context.nodes.worker_alive(
                worker.node_endpoint, worker.metadata.name, worker.epoch
            )
        except NodeError as e:
            if e.code is grpc.StatusCode.UNIMPLEMENTED:
                return False
            return row.heartbeat_at > self._context.clock() - self._context.node_timeout

    async def _silent(self, row: WorkerRow) -> None:
        name, context = row.worker.metadata.name, self._context
        # Until then it may say what its node keeps.
        forget_before = context.clock() - context.node_timeout
        if row.lost and not row.allocated and row.heartbeat_at > forget_before:
            return
        change = _mark_lost(name, context.heard_after, forget_before)
        lost, claims = await context.store.write(change)
        if not lost:
            return
        if not row.lost:
            _log.warning("worker lost", extra={"worker": name, "actors": len(claims)})
            self._context.metrics.worker_lost()
            self._ledger.forget(name)
        for uid in claims:
            self._recover(uid)

    def _recover(self, uid: str, *, workload_gone: bool = False) -> None:
        backoff = self._backoff.setdefault(uid, _Backoff())
        if uid in self._recovering or self._context.clock() < backoff.not_before:
            return
        self._recovering.add(uid)
        self._spawn(self._recover_one(uid, backoff, workload_gone=workload_gone))

    async def _recover_one(self, uid: str, backoff: _Backoff, *, workload_gone: bool) -> None:
        try:
            async with self._slots:
                actor = await self._operations.run(
                    uid, lambda: recover(self._context, uid, workload_gone=workload_gone)
                )
        except OperationHeldError:
            # Another control plane is at it; should it die, this one is soon the next.
            backoff.not_before = self._context.clock() + _FIRST_BACKOFF
        except (CallError, BusyError) as e:
            backoff.not_before = self._context.clock() + backoff.delay
            backoff.delay = min(backoff.delay * 2, _LAST_BACKOFF)
            _log.info("recovery goes on later", extra={"actor_uid": uid, "error": str(e)})
        else:
            self._backoff.pop(uid, None)
            self._context.metrics.recovered(records.state_word(actor.status.state))
        finally:
            self._recovering.discard(uid)

    async def _end_stray(self, worker: pb.Worker, uid: str) -> None:
        """What nobody claims must not run beside its actor's next activation."""
        with contextlib.suppress(CallError, BusyError):  # busy: its operation decides
            await self._operations.run(uid, lambda: self._end_stray_locked(worker, uid))

    async def _end_stray_locked(self, worker: pb.Worker, uid: str) -> None:
        actor = await self._context.store.read(lambda tx: tx.actors.by_uid(uid))
        if actor is not None and actor.status.assigned_node == worker.node_name:
            # Its files on that node are those of its present activation, which Terminate would
            # remove; the node's agent ended the old one when it started the new.
            return
        ref = pb.ObjectRef(atespace="unclaimed", name=uid)  # a deleted actor has no name any more
        if actor is not None:
            ref = pb.ObjectRef(atespace=actor.metadata.atespace, name=actor.metadata.name)
        handle = node_pb.ActorHandle(
            actor=ref, actor_uid=uid, worker=worker.metadata.name, worker_epoch=worker.epoch
        )
        _log.warning("stray workload", extra={"worker": worker.metadata.name, "actor_uid": uid})
        try:
            await self._context.nodes.terminate(worker.node_endpoint, handle)
        except NodeError as e:
            _log.info("a stray stays for now", extra={"actor_uid": uid, "error": str(e)})

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget_old_backoffs(self, now: float) -> None:
        for uid in [u for u, b in self._backoff.items() if b.not_before + 60 < now]:
            if uid not in self._recovering:
                del self._backoff[uid]


def _mark_lost(
    name: str, heard_after: float, forget_before: float
) -> Callable[[Transaction], tuple[bool, list[str]]]:
    """Marks a silent worker as lost; one with no claims left is forgotten in time."""

    def change(tx: Transaction) -> tuple[bool, list[str]]:
        row = tx.workers.get(name)
        if row is None or row.heartbeat_at > heard_after:
            return False, []
        claims = [c.actor_uid for c in tx.workers.claims(name)]
        if claims or row.heartbeat_at > forget_before:
            tx.workers.put(row.worker, heartbeat_at=row.heartbeat_at, lost=True)
        else:
            tx.workers.delete(name)
        return True, claims

    return change


def _endpoints(tx: Transaction) -> set[str]:
    """Of all nodes."""
    found = {row.worker.node_endpoint for row in every_worker(tx)}
    return found - {""}


def _claims_of(
    worker: pb.Worker,
) -> Callable[[Transaction], tuple[set[str], dict[str, float]]]:
    """All claims on it; and since when those of this incarnation that are RUNNING or PAUSED have
    been so."""

    def query(tx: Transaction) -> tuple[set[str], dict[str, float]]:
        claims = {c.actor_uid: c.worker_epoch for c in tx.workers.claims(worker.metadata.name)}
        actors = tx.actors.on_worker(worker.metadata.name, "", len(claims))
        settled = {
            a.metadata.uid: a.metadata.update_time.ToDatetime(UTC).timestamp()
            for a in actors
            if a.status.state in (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED)
            and claims.get(a.metadata.uid) == worker.epoch
        }
        return set(claims), settled

    return query
