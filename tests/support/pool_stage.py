"""Worker pools on a real API server with a real control plane: only nodes and workers are played.

A worker is played by its registrations: as long as its pod runs on a node that is there, it says every
moment that it lives and whom it hosts, as `ateworker` does through its node's agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
from atenet.controller.leadership import Leadership
from atenet.controller.metrics import Metrics
from atenet.controller.records import Records
from atenet.controller.resource import WorkerPool
from atenet.controller.running import WorkerPools
from atenet.controller.views import DRAIN_REASON
from atenet.controller.worker_pod import POOL_LABEL, SELECTOR, PodSettings
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from lightkube import ApiError, AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, ServiceAccount
from lightkube.types import PatchType

from tests.support.control_plane import ControlPlane, control_plane, resume
from tests.support.eventually import eventually, within
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_nodes import SimulatedNodes, simulated_nodes

_BEAT_SECONDS = 0.2
_BEATS_AT_ONCE = 4
NODES = ("node-1", "node-2", "node-3")
_numbers = itertools.count()


@dataclass
class Seen:
    """`most`: pods at a time that were not on their way out. `fewest_ready`: of those that take actors."""

    most: int = 0
    fewest_ready: int = 1_000_000

    def note(self, pods: list[Pod]) -> None:
        self.most = max(self.most, len(pods))
        ready = [
            pod
            for pod in pods
            if DRAIN_REASON not in (pod.metadata.annotations or {})
            and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or [])
        ]
        self.fewest_ready = min(self.fewest_ready, len(ready))


@dataclass
class PoolStage:
    client: AsyncClient
    nodes: SimulatedNodes
    control: ControlPlane
    namespace: str
    settings: PodSettings = field(default_factory=lambda: PodSettings(image="example.invalid/w:1"))
    # Actors of these workers are in use: a drain must wait for them.
    busy: set[str] = field(default_factory=set)
    # How many actors each worker holds, and how often it says that it lives.
    slots: int = 4
    beat_seconds: float = _BEAT_SECONDS
    _services: dict[str, Any] = field(default_factory=dict)
    # What the last registration of each worker said that was answered.
    _told_busy: dict[str, bool] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def controller(
        self, lease: str = "controller", *, client: AsyncClient | None = None, **options: Any
    ) -> AsyncIterator[WorkerPools]:
        """The loops of the leader, in this process; with a client of its own, where one is given."""
        client = client or self.client
        records = Records(
            self.control.addresses["grpc"],
            credential=self.control.identity.credential("ate-controller", spiffe.CONTROLLER_ID),
            roots=self.control.identity.trust("service-dns"),
            server_name=spiffe.API_SERVER_NAME,
        )
        leadership = Leadership(client, self.namespace, lease, self.namespace)
        made: list[WorkerPools] = []
        started, stop = asyncio.Event(), asyncio.Event()

        async def lead() -> None:
            pools = WorkerPools(
                client,
                records,
                leadership,
                Metrics(leadership),
                self.settings,
                (self.namespace,),
                **options,
            )
            made.append(pools)
            started.set()
            await pools.run()

        task = asyncio.create_task(leadership.run(lead, stop))
        try:
            await within(started.wait(), 20)
            yield made[0]
        finally:
            stop.set()
            await task
            await records.close()

    async def create(self, name: str = "pool", **spec: Any) -> None:
        account = ServiceAccount(metadata=ObjectMeta(name=name, namespace=self.namespace))
        await self.client.create(account)
        metadata = {"name": name, "namespace": self.namespace}
        await self.client.create(WorkerPool(metadata=metadata, spec=spec))

    async def change(self, name: str = "pool", **spec: Any) -> None:
        await self.client.patch(
            WorkerPool, name, {"spec": spec}, namespace=self.namespace, patch_type=PatchType.MERGE
        )

    async def scale(self, replicas: int, name: str = "pool") -> None:
        """As `kubectl scale` and autoscalers do."""
        await self.client.patch(
            WorkerPool.Scale,
            name,
            {"spec": {"replicas": replicas}},
            namespace=self.namespace,
            patch_type=PatchType.MERGE,
        )

    async def delete(self, name: str = "pool") -> None:
        await self.client.delete(WorkerPool, name, namespace=self.namespace)

    async def is_gone(self, name: str = "pool") -> bool:
        try:
            await self.client.get(WorkerPool, name, namespace=self.namespace)
        except ApiError as error:
            return error.status.code == 404
        return False

    async def delete_pod(self, name: str) -> None:
        await self.client.delete(Pod, name, namespace=self.namespace)

    async def is_draining(self, worker: str) -> bool:
        found = (await self.workers()).get(worker)
        return found is not None and found.status.state == pb.WORKER_STATE_DRAINING

    async def is_draining_or_gone(self, worker: str) -> bool:
        return worker not in await self.workers() or await self.is_draining(worker)

    async def node_of(self, pod: str) -> str | None:
        found = await self.client.get(Pod, pod, namespace=self.namespace)
        return found.spec.nodeName if found.spec else None

    async def any_draining(self) -> bool:
        return any([await self.is_draining(name) for name in await self.workers()])

    async def none_draining(self) -> bool:
        return not await self.any_draining()

    @contextlib.asynccontextmanager
    async def watched(self, name: str = "pool") -> AsyncIterator[Seen]:
        """Every state of the pool's pods that the API server tells while the block lasts."""
        seen = Seen()
        pods = {pod.metadata.name: pod for pod in await self.pods(name)}
        listed = self.client.list(Pod, namespace=self.namespace, labels={POOL_LABEL: name})
        async for _ in listed:
            pass
        changes = self.client.watch(
            Pod,
            namespace=self.namespace,
            labels={POOL_LABEL: name},
            resource_version=listed.resourceVersion,
        )

        async def follow() -> None:
            async for kind, pod in changes:
                pods[pod.metadata.name] = pod
                if kind == "DELETED" or pod.metadata.deletionTimestamp is not None:
                    del pods[pod.metadata.name]
                seen.note(list(pods.values()))

        task = asyncio.create_task(follow())
        try:
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def pods(self, name: str = "pool") -> list[Pod]:
        """Those that are not on their way out."""
        return [
            pod
            async for pod in self.client.list(
                Pod, namespace=self.namespace, labels={POOL_LABEL: name}
            )
            if pod.metadata.deletionTimestamp is None
        ]

    async def names(self, name: str = "pool") -> set[str]:
        return {pod.metadata.name for pod in await self.pods(name)}

    async def status(self, name: str = "pool") -> dict[str, Any]:
        pool = await self.client.get(WorkerPool, name, namespace=self.namespace)
        return dict(pool.status or {})

    async def says(self, condition: str, word: str, name: str = "pool") -> bool:
        """Whether that condition is true and its message has the word."""
        return any(
            c["type"] == condition and c["status"] == "True" and word in c["message"]
            for c in (await self.status(name)).get("conditions", [])
        )

    async def settled(self, ready: int, name: str = "pool", seconds: float = 40) -> dict[str, Any]:
        """Once so many workers are there, ready, of the present template, and no other is."""
        last: dict[str, Any] = {}

        async def holds() -> bool:
            nonlocal last
            pool = await self.client.get(WorkerPool, name, namespace=self.namespace)
            last = dict(pool.status or {})
            numbers = [
                last.get(f"{kind}eplicas") for kind in ("r", "readyR", "updatedR", "drainingR")
            ]
            seen = last.get("observedGeneration") == pool.metadata.generation
            return seen and numbers == [ready, ready, ready, 0]

        try:
            await eventually(holds, seconds)
        except TimeoutError:
            raise AssertionError(f"not settled: {last}") from None
        return last

    async def workers(self) -> dict[str, pb.Worker]:
        """Records of the control plane, by name, of this test's namespace."""
        answer = await self.control.control().ListWorkers(pb.ListWorkersRequest(page_size=1000))
        return {w.metadata.name: w for w in answer.workers if w.worker_namespace == self.namespace}

    async def registered(self) -> dict[str, pb.Worker]:
        """Once the control plane knows a worker for every pod, and none besides."""

        known: set[str] = set()
        alive: set[str] = set()

        async def holds() -> bool:
            nonlocal known, alive
            pods = self.client.list(Pod, namespace=self.namespace, labels=SELECTOR)
            alive = {p.metadata.name async for p in pods if p.metadata.deletionTimestamp is None}
            known = set(await self.workers())
            return known == alive

        try:
            await eventually(holds, 30)
        except TimeoutError:
            raise AssertionError(
                f"records without pods: {known - alive}, pods without records: {alive - known}"
            ) from None
        return await self.workers()

    async def host(self, *actors: str) -> dict[str, str]:
        """These run somewhere; where, by actor."""
        await self.control.seed(*actors)
        control = self.control.control()
        where = {}
        for actor in actors:
            answer = await control.ResumeActor(resume(actor))
            where[actor] = answer.actor.status.worker_assignment.worker.name
        return where

    async def occupy(self, *workers: str) -> None:
        """Their actors are in use from now on, and the control plane has heard of it."""
        self.busy.update(workers)
        await eventually(lambda: all(self._told_busy.get(name, False) for name in workers))

    async def play_workers(self) -> None:
        """Some at a time: a node's agents do not wait for each other."""
        slots = asyncio.Semaphore(_BEATS_AT_ONCE)

        async def beat(pod: Pod) -> None:
            async with slots:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await self._register(pod)

        while True:
            pods = [
                pod
                for pod in self.nodes.running()
                if pod.metadata.namespace == self.namespace
                and POOL_LABEL in (pod.metadata.labels or {})
            ]
            await asyncio.gather(*map(beat, pods))
            await asyncio.sleep(self.beat_seconds)

    async def _register(self, pod: Pod) -> None:
        name, node = pod.metadata.name, pod.spec.nodeName
        busy = name in self.busy
        service = self._services.get(node)
        if service is None:
            service = self._services[node] = self.control.worker_service(node)
        request = self.control.registration(
            name,
            node=node,
            slots=self.slots,
            epoch=1 + zlib.crc32(pod.metadata.uid.encode()),
            draining=pod.metadata.deletionTimestamp is not None,
            busy=busy,
            idle_ms=0 if busy else 5000,
        )
        request.worker.worker_namespace = pod.metadata.namespace
        request.worker.worker_pool = pod.metadata.labels[POOL_LABEL]
        request.worker.worker_pod = name
        request.worker.worker_pod_uid = pod.metadata.uid
        await service.RegisterWorker(request)
        self._told_busy[name] = busy


@contextlib.asynccontextmanager
async def pool_stage(cluster: KubeCluster, root: Path, **limits: Any) -> AsyncIterator[PoolStage]:
    """A namespace of its own on that cluster, which knows WorkerPools; nodes with names of their own."""
    namespace = f"pools-{next(_numbers)}"
    client = cluster.async_client()
    names = [f"{namespace}-{name}" for name in NODES]
    try:
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        async with (
            control_plane(root, **limits) as control,
            control.in_process(),
            simulated_nodes(client, names) as nodes,
        ):
            stage = PoolStage(client, nodes, control, namespace)
            playing = asyncio.create_task(stage.play_workers())
            try:
                yield stage
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)
    finally:
        await client.close()
