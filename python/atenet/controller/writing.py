"""Every write to the cluster: only by the leader, and its answer into the cache at once."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lightkube import ApiError, AsyncClient
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from atenet.controller.cache import Cache, Key, key_of
from atenet.controller.leadership import Leadership
from atenet.controller.metrics import Metrics
from atenet.controller.pool import WorkerPoolSpec
from atenet.controller.resource import WorkerPool
from atenet.controller.views import DRAIN_REASON, DRAIN_SINCE, Reason
from atenet.controller.worker_pod import NAME_LETTERS, PodSettings, worker_pod

__all__ = ["Writing"]

_log = logging.getLogger(__name__)
_SUFFIX_LETTERS = 8
_PARALLEL = 8


class Writing:
    def __init__(
        self,
        client: AsyncClient,
        leadership: Leadership,
        metrics: Metrics,
        pools: Cache[Any],
        pods: Cache[Any],
    ) -> None:
        self._client = client
        self._leadership = leadership
        self._metrics = metrics
        self._pools = pools
        self._pods = pods
        # Pods whose making was not answered: they may be there. By pool, and by their own name.
        self._unsure: dict[Key, dict[str, Any]] = {}
        self._slots = asyncio.Semaphore(_PARALLEL)

    async def settle(self, key: Key) -> None:
        """Before anything is decided for a pool: pods that may or may not be there are there, or
        refused. Raises what the server, or the way to it, fails with."""
        for pod in list(self._unsure.get(key, {}).values()):
            await self._make(key, pod)

    async def create(
        self, key: Key, uid: str, spec: WorkerPoolSpec, settings: PodSettings, count: int
    ) -> None:
        """That many pods. Raises the first failure, once all have been tried."""
        pods = [worker_pod(key, uid, spec, settings, _suffix()) for _ in range(count)]
        await _all(self._make(key, pod) for pod in pods)

    async def mark(self, pod: Key, uid: str, reason: Reason, now: datetime) -> None:
        """It begins to leave. Written once, so that its time does not begin anew."""
        changes = {DRAIN_REASON: reason.value, DRAIN_SINCE: now.isoformat(timespec="milliseconds")}
        await self._annotate(pod, uid, changes)
        self._count("mark", pod, reason=reason.value)

    async def unmark(self, pod: Key, uid: str) -> None:
        await self._annotate(pod, uid, {DRAIN_REASON: None, DRAIN_SINCE: None})
        self._count("unmark", pod)

    async def delete(self, pod: Key) -> None:
        """No other pod ever has its name."""
        self._leadership.check()
        try:
            await self._client.delete(Pod, pod.name, namespace=pod.namespace)
        except ApiError as error:
            if error.status.code != 404:
                raise
        self._count("delete", pod)

    async def finalizers(self, pool: Any, wanted: list[str]) -> None:
        """With the version that was read, so that nobody else's are lost."""
        self._leadership.check()
        meta = pool.metadata
        patch = {"metadata": {"finalizers": wanted, "resourceVersion": meta.resourceVersion}}
        try:
            answer = await self._client.patch(
                WorkerPool, meta.name, patch, namespace=meta.namespace, patch_type=PatchType.MERGE
            )
        except ApiError as error:
            if error.status.code == 404:
                return
            raise
        self._pools.take(answer)

    async def status(self, pool: Any, status: Mapping[str, Any]) -> None:
        self._leadership.check()
        meta = pool.metadata
        try:
            answer = await self._client.patch(
                WorkerPool.Status,
                meta.name,
                {"status": dict(status)},
                namespace=meta.namespace,
                patch_type=PatchType.MERGE,
            )
        except ApiError as error:
            if error.status.code == 404:
                return
            raise
        self._pools.take(answer)

    async def _make(self, key: Key, pod: dict[str, Any]) -> None:
        """By its name once, however often it is asked for."""
        name = pod["metadata"]["name"]
        unsure = self._unsure.setdefault(key, {})
        unsure[name] = pod
        try:
            async with self._slots:
                self._leadership.check()
                made = await self._created(key.namespace, name, pod)
        except ApiError as error:
            if (error.status.code or 500) < 500 and error.status.code != 429:
                del unsure[name]  # refused: it is not there
            raise
        del unsure[name]
        self._pods.take(made)
        self._count("create", key_of(made))

    async def _created(self, namespace: str, name: str, pod: dict[str, Any]) -> Any:
        try:
            return await self._client.create(Pod.from_dict(pod))
        except ApiError as error:
            if error.status.reason != "AlreadyExists":
                raise
        return await self._client.get(Pod, name, namespace=namespace)

    async def _annotate(self, pod: Key, uid: str, changes: Mapping[str, str | None]) -> None:
        self._leadership.check()
        # The uid in a patch is a condition: another pod of that name is left alone.
        patch = {"metadata": {"uid": uid, "annotations": dict(changes)}}
        try:
            answer = await self._client.patch(
                Pod, pod.name, patch, namespace=pod.namespace, patch_type=PatchType.MERGE
            )
        except ApiError as error:
            if error.status.code in (404, 409):
                return
            raise
        self._pods.take(answer)

    def _count(self, kind: str, pod: Key, **more: str) -> None:
        self._metrics.actions.labels(kind).inc()
        _log.info("worker pod", extra={"action": kind, "pod": str(pod), **more})


def _suffix() -> str:
    return "".join(secrets.choice(NAME_LETTERS) for _ in range(_SUFFIX_LETTERS))


async def _all(works: Iterable[Any]) -> None:
    """All to their end; then the first failure."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
