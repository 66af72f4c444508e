"""The loops of worker pools: caches kept, turns taken, leftovers swept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from lightkube import AsyncClient
from lightkube.resources.core_v1 import Pod

from atenet.controller.cache import Cache, Key, key_of
from atenet.controller.departed import Departed, sweep
from atenet.controller.following import UNREACHABLE, follow
from atenet.controller.leadership import Leadership, NotLeadingError
from atenet.controller.metrics import Metrics
from atenet.controller.pools import PoolLook
from atenet.controller.records import UNANSWERED, Records
from atenet.controller.resource import WorkerPool
from atenet.controller.turns import Turns
from atenet.controller.worker_pod import POOL_LABEL, SELECTOR, PodSettings
from atenet.controller.writing import Writing

__all__ = ["WorkerPools"]

_log = logging.getLogger(__name__)
_K = TypeVar("_K", bound=Hashable)
_PARALLEL = 8
_SWEEP_SECONDS = 30.0


class WorkerPools:
    """`namespaces`: whose pools; none given: all."""

    def __init__(
        self,
        client: AsyncClient,
        records: Records,
        leadership: Leadership,
        metrics: Metrics,
        settings: PodSettings,
        namespaces: tuple[str, ...] = (),
        sweep_seconds: float = _SWEEP_SECONDS,
    ) -> None:
        self._client = client
        self._sweep_seconds = sweep_seconds
        self._records = records
        self._metrics = metrics
        self._namespaces = namespaces
        self.turns: Turns[Key] = Turns()
        self.departed = Departed(records, leadership, metrics)
        self.pools: Cache[Any] = Cache(key_of, self.turns.call, matters=_is_wanted_otherwise)
        self.pods: Cache[Any] = Cache(_pool_of, self.turns.call, self.departed.gone)
        self._loads: dict[str, int] = {}
        writing = Writing(client, leadership, metrics, self.pools, self.pods)
        self.look = PoolLook(self.pools, self.pods, records, writing, settings, self._loads)
        metrics.queued.set_function(lambda: len(self.turns))

    async def run(self) -> None:
        """For ever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for namespace in self._namespaces or ("*",):
                    tasks.create_task(self._follow(WorkerPool, self.pools, namespace, {}))
                    tasks.create_task(self._follow(Pod, self.pods, namespace, SELECTOR))
                for namespace in self._namespaces or ("*",):
                    # Nothing is decided by half of what there is.
                    await self.pools.listed(namespace)
                    await self.pods.listed(namespace)
                for _ in range(_PARALLEL):
                    tasks.create_task(self._work(self.turns, self._timed))
                    tasks.create_task(self._work(self.departed.turns, self.departed.look))
                tasks.create_task(self._sweep())
        finally:
            self.turns.close()
            self.departed.turns.close()

    async def _follow(
        self, kind: Any, cache: Cache[Any], namespace: str, labels: dict[str, str]
    ) -> None:
        listing = self._metrics.relists.labels(kind.__name__).inc
        await follow(self._client, kind, cache, namespace=namespace, labels=labels, listing=listing)

    async def _work(self, turns: Turns[_K], look: Callable[[_K], Awaitable[float | None]]) -> None:
        while True:
            key = await turns.next()
            try:
                again_in = await look(key)
            except (NotLeadingError, *UNREACHABLE, *UNANSWERED) as error:
                wait = turns.failed(key)
                self._metrics.reconciliations.labels("failed").inc()
                _log.warning(
                    "tried again later",
                    extra={"key": str(key), "error": _said(error), "retry_s": round(wait, 2)},
                )
            except Exception:  # noqa: BLE001 - one bad pool must not end the care for all others
                turns.failed(key)
                self._metrics.reconciliations.labels("failed").inc()
                _log.exception("a look failed", extra={"key": str(key)})
            else:
                turns.done(key, again_in=again_in)
                self._metrics.reconciliations.labels("again" if again_in else "done").inc()

    async def _timed(self, key: Key) -> float | None:
        began = time.monotonic()
        try:
            return await self.look(key)
        finally:
            self._metrics.reconcile_seconds.observe(time.monotonic() - began)

    async def _sweep(self) -> None:
        while True:
            try:
                found = await sweep(
                    self._client, self._records, self.pods, self.departed, self._namespaces
                )
                self._loads.clear()
                self._loads.update(found)
            except (*UNREACHABLE, *UNANSWERED) as error:
                _log.warning("workers could not be swept", extra={"error": _said(error)})
            await asyncio.sleep(self._sweep_seconds)


def _is_wanted_otherwise(before: Any, after: Any) -> bool:
    """Status and bookkeeping are mostly our own words: they call for nothing."""
    one, other = before.metadata, after.metadata
    return (one.generation, one.deletionTimestamp) != (other.generation, other.deletionTimestamp)


def _pool_of(pod: Any) -> Key | None:
    pool = (pod.metadata.labels or {}).get(POOL_LABEL)
    return None if pool is None else Key(pod.metadata.namespace, pool)


def _said(error: BaseException) -> str:
    if isinstance(error, UNANSWERED):
        return f"control plane: {error.code().name}: {error.details()}"
    return str(error) or type(error).__name__
