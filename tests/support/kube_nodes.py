"""Nodes that are only objects, as kwok makes them: their pods run as far as the API server can tell.

Each has a lease that is renewed and a kubelet's part towards pods: bound to it, a pod becomes
Running and Ready with an address; told to go, it goes. What tests watch is what a controller sees.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
from lightkube import ApiError, AsyncClient
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.core_v1 import Binding, ObjectReference
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Namespace, Node, Pod

_LEASES = "kube-node-lease"
_RESOURCES = {"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"}
_PODS = ipaddress.IPv4Network("10.244.0.0/16")
_HOSTS = ipaddress.IPv4Network("192.0.2.0/24")
# A pod that is asked for more at a time would only wait in the client's queue.
_PARALLEL = 16


@dataclass
class SimulatedNodes:
    """`bind`: pods of no node are bound round robin, for clusters without a scheduler. `becomes_ready`
    may hold pods back: they run, but not ready."""

    client: AsyncClient
    names: Sequence[str]
    bind: bool = True
    lease_seconds: float = 2.0
    labels: dict[str, str] = field(default_factory=dict)
    becomes_ready: Callable[[Pod], bool] = lambda _: True
    # As last seen, by namespace and name.
    pods: dict[tuple[str, str], Pod] = field(default_factory=dict)
    _alive: set[str] = field(default_factory=set)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turns = itertools.cycle(self.names)
        self._addresses = (str(address) for address in _PODS.hosts())
        self._slots = asyncio.Semaphore(_PARALLEL)
        self._working: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def start(self) -> None:
        with _already():
            await self.client.create(Namespace(metadata=ObjectMeta(name=_LEASES)))
        for number, name in enumerate(self.names):
            await self._register(name, number)
        self._tasks = [asyncio.create_task(self._renew()), asyncio.create_task(self._follow())]

    def running(self) -> list[Pod]:
        """Pods whose processes run, as far as anything of them does: on nodes that were not lost."""
        return [
            pod
            for pod in self.pods.values()
            if pod.spec.nodeName in self._alive and pod.status and pod.status.phase == "Running"
        ]

    async def lose(self, name: str) -> None:
        """It falls silent: its lease is not renewed, nothing happens to its pods."""
        self._alive.discard(name)

    async def find(self, name: str) -> None:
        """It is back, and looks after its pods again."""
        self._alive.add(name)
        async for pod in self.client.list(Pod, namespace="*", fields={"spec.nodeName": name}):
            self._take(pod)

    async def remove(self, name: str) -> None:
        """Its object is deleted, as a cloud provider's controller does when a machine is gone."""
        self._alive.discard(name)
        await self.client.delete(Node, name)

    async def stop(self) -> None:
        """And leave none: a cluster most of whose nodes are silent evicts nothing."""
        for task in [*self._tasks, *self._working.values()]:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._working.values(), return_exceptions=True)
        for name in self.names:
            with contextlib.suppress(ApiError):
                await self.client.delete(Node, name)

    async def _register(self, name: str, number: int) -> None:
        address = str(_HOSTS[number + 1])
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **self.labels}
        await self.client.create(Node(metadata=ObjectMeta(name=name, labels=labels)))
        spec = LeaseSpec(holderIdentity=name, leaseDurationSeconds=40, renewTime=_now())
        await self.client.create(
            Lease(metadata=ObjectMeta(name=name, namespace=_LEASES), spec=spec)
        )
        self._alive.add(name)
        status = {
            "conditions": [_condition("Ready", True, reason="KubeletReady")],
            "addresses": [{"type": "InternalIP", "address": address}],
            "capacity": _RESOURCES,
            "allocatable": _RESOURCES,
        }
        await self.client.patch(Node.Status, name, {"status": status})
        # Admission taints every new node; who takes that off in a cluster may not be running here.
        await self.client.patch(Node, name, {"spec": {"taints": None}})

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.lease_seconds)
            for name in sorted(self._alive):
                patch = {"spec": {"renewTime": _now().isoformat()}}
                with contextlib.suppress(ApiError, httpx2.TransportError):
                    await self.client.patch(Lease, name, patch, namespace=_LEASES)

    async def _follow(self) -> None:
        """Every pod, from the beginning again whenever the watch ends."""
        while True:
            with contextlib.suppress(ApiError, httpx2.TransportError):
                listed = self.client.list(Pod, namespace="*")
                self.pods.clear()
                async for pod in listed:
                    self._take(pod)
                version = listed.resourceVersion
                changes: AsyncIterator[Any] = self.client.watch(
                    Pod, namespace="*", resource_version=version
                )
                async for kind, pod in changes:
                    if kind == "DELETED":
                        self.pods.pop((pod.metadata.namespace, pod.metadata.name), None)
                    else:
                        self._take(pod)
            await asyncio.sleep(0.1)

    def _take(self, pod: Pod) -> None:
        """One task a pod; what changes meanwhile is seen in that task's own next look."""
        key = (pod.metadata.namespace, pod.metadata.name)
        self.pods[key] = pod
        step = self._step(pod)
        if step is None:
            return
        before = self._working.get(key)
        task = asyncio.create_task(self._work(step, pod, before))
        self._working[key] = task
        task.add_done_callback(
            lambda done: self._working.pop(key) if self._working.get(key) is done else None
        )

    async def _work(
        self, step: Callable[[Pod], Any], pod: Pod, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        async with self._slots:
            with contextlib.suppress(ApiError, httpx2.TransportError):
                await step(pod)

    def _step(self, pod: Pod) -> Callable[[Pod], Any] | None:
        node = pod.spec.nodeName
        if node is None:
            return self._bind if self.bind and pod.metadata.deletionTimestamp is None else None
        if node not in self._alive:
            return None
        if pod.metadata.deletionTimestamp is not None:
            return self._end
        return self._run if pod.status is None or pod.status.phase == "Pending" else None

    async def _bind(self, pod: Pod) -> None:
        turns = itertools.islice(self._turns, len(self.names))
        node = next((name for name in turns if name in self._alive), None)
        if node is None:
            return
        metadata = ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace)
        target = ObjectReference(kind="Node", name=node, apiVersion="v1")
        binding = Pod.Binding(metadata=metadata, target=target)
        assert isinstance(binding, Binding)
        # The server answers with a Status, which lightkube expects to be a Binding.
        with contextlib.suppress(msgspec.ValidationError):
            await self.client.create(binding, pod.metadata.name, namespace=pod.metadata.namespace)

    async def _run(self, pod: Pod) -> None:
        ready = self.becomes_ready(pod)
        address = next(self._addresses)
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": _now().isoformat(),
            "conditions": [
                *(_condition(name, True) for name in ("PodScheduled", "Initialized")),
                *(_condition(name, ready) for name in ("ContainersReady", "Ready")),
            ],
            "containerStatuses": [_container(c.name, c.image, ready) for c in pod.spec.containers],
        }
        await self.client.patch(
            Pod.Status, pod.metadata.name, {"status": status}, namespace=pod.metadata.namespace
        )

    async def _end(self, pod: Pod) -> None:
        await self.client.delete(
            Pod, pod.metadata.name, namespace=pod.metadata.namespace, grace_period=0
        )


@contextlib.asynccontextmanager
async def simulated_nodes(
    client: AsyncClient, names: Iterable[str], **options: Any
) -> AsyncIterator[SimulatedNodes]:
    nodes = SimulatedNodes(client, list(names), **options)
    await nodes.start()
    try:
        yield nodes
    finally:
        await nodes.stop()


@contextlib.contextmanager
def _already() -> Any:
    try:
        yield
    except ApiError as error:
        if error.status.reason != "AlreadyExists":
            raise


def _now() -> datetime:
    return datetime.now(UTC)


def _condition(name: str, true: bool, reason: str | None = None) -> dict[str, Any]:
    made = {"type": name, "status": str(true), "lastTransitionTime": _now().isoformat()}
    return {**made, "reason": reason} if reason else made


def _container(name: str, image: str | None, ready: bool) -> dict[str, Any]:
    return {
        "name": name,
        "image": image or "",
        "imageID": image or "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _now().isoformat()}},
    }
