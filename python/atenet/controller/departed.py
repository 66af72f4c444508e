"""Records of workers whose pods are gone: no more actors come to them, and they are forgotten."""

from __future__ import annotations

import logging
from typing import Any

from lightkube import ApiError, AsyncClient
from lightkube.resources.core_v1 import Pod

from atenet.controller.cache import Cache, Key
from atenet.controller.leadership import Leadership
from atenet.controller.metrics import Metrics
from atenet.controller.records import Records
from atenet.controller.turns import Turns
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Departed", "Gone"]

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 2.0

# The worker's name and its pod's uid.
Gone = tuple[str, str]


class Departed:
    """`call`ed for a worker, it looks after its record until there is none."""

    def __init__(self, records: Records, leadership: Leadership, metrics: Metrics) -> None:
        self.turns: Turns[Gone] = Turns()
        self._records = records
        self._leadership = leadership
        self._metrics = metrics

    def gone(self, pod: Any) -> None:
        self.turns.call((pod.metadata.name, pod.metadata.uid))

    async def look(self, gone: Gone) -> float | None:
        """Its actors are freed by the control plane itself, which hears nothing from it any more."""
        name, uid = gone
        found = await self._records.get(name)
        if found is None or found.pod_uid != uid:
            return None
        self._leadership.check()
        if not found.draining:
            await self._records.drain(name)
        elif found.actors == 0:
            await self._records.forget(name, found.uid)
            self._metrics.actions.labels("forget").inc()
            _log.info("worker forgotten", extra={"worker": name})
            return None
        return _LOOK_AGAIN_SECONDS if found.actors else 0.0


async def sweep(
    client: AsyncClient,
    records: Records,
    pods: Cache[Any],
    departed: Departed,
    namespaces: tuple[str, ...],
) -> dict[str, int]:
    """Calls for every record whose pod is not there. Actors by worker.

    What this process was not there to see, and what ended while none was, is found here.
    """
    loads: dict[str, int] = {}
    missing: list[pb.Worker] = []
    async for worker in records.all():
        loads[worker.metadata.name] = worker.status.allocated.actors
        if _in_a_cluster(worker, namespaces) and not _has_pod(worker, pods):
            missing.append(worker)
    for worker in missing:
        # Not in the cache: gone, or somebody else's worker in a pod without our labels.
        if not await _is_there(client, worker):
            departed.turns.call((worker.metadata.name, worker.worker_pod_uid))
    return loads


def _in_a_cluster(worker: pb.Worker, namespaces: tuple[str, ...]) -> bool:
    """One that was started by hand names itself as its pod."""
    by_hand = worker.worker_pod_uid in ("", worker.metadata.name)
    return not by_hand and (not namespaces or worker.worker_namespace in namespaces)


def _has_pod(worker: pb.Worker, pods: Cache[Any]) -> bool:
    pod = pods.get(Key(worker.worker_namespace, worker.worker_pod))
    return pod is not None and pod.metadata.uid == worker.worker_pod_uid


async def _is_there(client: AsyncClient, worker: pb.Worker) -> bool:
    try:
        pod = await client.get(Pod, worker.worker_pod, namespace=worker.worker_namespace)
    except ApiError as error:
        if error.status.code == 404:
            return False
        raise
    assert pod.metadata is not None
    return pod.metadata.uid == worker.worker_pod_uid
