"""Worker pools when nodes, answers, the API server or the controller itself are lost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from atenet.controller.signing.authorities import ensure_authorities
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Secret

from tests.support.eventually import eventually, within
from tests.support.kube_cluster import KubeCluster
from tests.support.pool_stage import PoolStage, pool_stage


@pytest.fixture
async def stage(kube_with_pools: KubeCluster, tmp_path: Path) -> AsyncIterator[PoolStage]:
    async with pool_stage(kube_with_pools, tmp_path, worker_timeout=2.0) as made:
        yield made


async def test_an_answer_that_is_lost_makes_no_second_pod(
    stage: PoolStage, kube_with_pools: KubeCluster
) -> None:
    lost: list[str] = []

    async def lose_first(response: httpx2.Response) -> None:
        if response.request.method == "POST" and "/pods" in str(response.url) and len(lost) < 3:
            lost.append(str(response.url))
            raise httpx2.ReadError("the connection broke before the answer")

    client = kube_with_pools.async_client()
    client._client._client.event_hooks = {"response": [lose_first]}
    try:
        async with stage.watched() as seen, stage.controller(client=client):
            await stage.create(replicas=3)
            await stage.settled(3)
        assert len(lost) == 3
        assert seen.most == 3
    finally:
        await client.close()


# A handshake that the server's end cuts leaves its socket to the collector, in the client library.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_rollout_goes_on_when_the_api_server_was_killed_in_the_middle(
    stage: PoolStage, kube_with_pools: KubeCluster
) -> None:
    async with stage.controller():
        await stage.create(replicas=3)
        await stage.settled(3)
        await stage.registered()
        old = await stage.names()
        await stage.change(slots=7)

        async def half_way() -> bool:
            return 0 < len(old - await stage.names()) < 3

        await eventually(half_way)
        await asyncio.to_thread(kube_with_pools.restart_api_server)
        await stage.settled(3, seconds=60)
        assert not old & await stage.names()
    gc.collect()


async def test_workers_of_a_lost_node_are_replaced_and_their_actors_freed(
    stage: PoolStage, kube_with_pools: KubeCluster
) -> None:
    kube_with_pools.start_controller_manager(node_grace="5s")
    async with stage.controller():
        await stage.create(replicas=3, nodeLossSeconds=1)
        await stage.settled(3)
        await stage.registered()
        where = await stage.host("a", "b", "c")
        lost = (await stage.node_of(where["a"])) or ""
        gone = {pod.metadata.name for pod in await stage.pods() if pod.spec.nodeName == lost}
        assert gone
        await stage.nodes.lose(lost)

        async def replaced() -> bool:
            pods = await stage.pods()
            nodes = {pod.spec.nodeName for pod in pods}
            return len(pods) == 3 and lost not in nodes and not gone & await stage.names()

        await eventually(replaced, 60)
        # The node's agent cannot be asked for files; the record says that its worker is no more.
        await eventually(lambda: stage.is_draining_or_gone(where["a"]), 20)
    kube_with_pools.kill("kube-controller-manager")


class _Replica:
    """A controller in a process of its own."""

    def __init__(self, stage: PoolStage, cluster: KubeCluster, root: Path, name: str) -> None:
        self.ready = root / f"{name}.json"
        self.log = root / f"{name}.log"
        (root / name).mkdir()
        identity = stage.control.identity
        self._command = [
            *(sys.executable, "-c", "from atenet.controller.main import main; main()", "run"),
            *("--kubeconfig", str(cluster.admin_kubeconfig), "--identity", name),
            *("--api", stage.control.addresses["grpc"]),
            *("--api-roots", str(identity.trust("service-dns"))),
            *("--credential", str(root / name / "credential-bundle.pem")),
            *("--worker-image", "example.invalid/ateworker:1", "--ready-file", str(self.ready)),
            *("--watch-namespace", stage.namespace, "--namespace", stage.namespace),
        ]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[_Replica]:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(*self._command, stderr=log)
        try:
            await eventually(self._is_ready, 30)
            yield self
        finally:
            if self.process.returncode is None:
                self.process.kill()
            await self.process.wait()

    def _is_ready(self) -> bool:
        assert self.process.returncode is None, self.log.read_text()
        return self.ready.exists()

    async def page(self, path: str) -> str:
        address = json.loads(self.ready.read_text())["stats"]
        async with httpx2.AsyncClient() as http:
            return (await http.get(f"http://{address}{path}")).text


async def _authorities(stage: PoolStage) -> None:
    """The cluster signs with the same key as the test's own control plane trusts."""
    state = stage.control.root / "state" / "ca"
    key, certificate = ((state / f"pod-identity.{end}").read_text() for end in ("key", "crt"))
    await stage.client.create(
        Secret(
            metadata=ObjectMeta(name="ate-authority-pod-identity", namespace=stage.namespace),
            stringData={"current.pem": key + certificate},
        )
    )
    await ensure_authorities(stage.client, stage.namespace)


async def test_of_two_replicas_one_acts_and_the_other_takes_over_when_it_is_killed(
    stage: PoolStage, kube_with_pools: KubeCluster, tmp_path: Path
) -> None:
    await _authorities(stage)
    one, two = (_Replica(stage, kube_with_pools, tmp_path, name) for name in ("one", "two"))
    async with one.running():
        await eventually(lambda: _says(one, "leading"), 30)
        async with two.running():
            await stage.create(replicas=2)
            await stage.settled(2)
            assert await two.page("/readyz") == "waiting for the lease\n"
            one.process.send_signal(signal.SIGKILL)
            await one.process.wait()
            await stage.scale(3)
            await stage.settled(3, seconds=60)
            assert await two.page("/readyz") == "leading\n"
            two.process.send_signal(signal.SIGTERM)
            assert await within(two.process.wait(), 20) == 0
    lease = await stage.client.get(Lease, "ate-controller", namespace=stage.namespace)
    assert (lease.spec.holderIdentity or "") == ""
    assert lease.spec.leaseTransitions == 1


async def _says(replica: _Replica, word: str) -> bool:
    return (await replica.page("/readyz")).startswith(word)
