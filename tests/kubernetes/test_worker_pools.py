"""Worker pools on a real API server, with a real control plane; nodes and workers are played."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from atenet.controller.resource import WorkerPool
from atenet.controller.worker_pod import HASH_LABEL
from lightkube import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ServiceAccount

from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster
from tests.support.pool_stage import PoolStage, pool_stage


@pytest.fixture
async def stage(kube_with_pools: KubeCluster, tmp_path: Path) -> AsyncIterator[PoolStage]:
    async with pool_stage(kube_with_pools, tmp_path, worker_timeout=5.0) as made:
        yield made


async def test_a_pool_becomes_worker_pods_that_register(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=3, labels={"zone": "a"})
        status = await stage.settled(3)
        workers = await stage.registered()
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Available": "True",
        "Progressing": "False",
        "Failing": "False",
    }
    for pod in await stage.pods():
        assert pod.metadata.ownerReferences[0].kind == "WorkerPool"
        assert "--label=zone=a" in pod.spec.containers[0].args
        assert workers[pod.metadata.name].worker_pod_uid == pod.metadata.uid


@pytest.mark.parametrize(
    ("name", "spec", "word"),
    [
        ("pool", {"replicas": -1}, "spec.replicas"),
        ("pool", {"slots": 0}, "spec.slots"),
        ("pool", {"sandboxClass": "container"}, "spec.sandboxClass"),
        ("pool", {"strategy": {"maxSurge": 0}}, "nothing could be replaced"),
        ("pool", {"labels": {"no key": "x"}}, "labels: each key"),
        ("pool", {"labels": {"key": "no value!"}}, "labels: each value"),
        ("pool", {"resources": {"limits": {"cpu": "much"}}}, "limits.cpu"),
        ("pool", {"serviceAccountName": "default"}, "must not be default"),
        ("default", {}, "must not be called default"),
        ("a" * 55, {}, "at most 54 characters"),
    ],
)
async def test_what_makes_no_sense_the_api_server_refuses_by_its_field(
    stage: PoolStage, name: str, spec: dict[str, Any], word: str
) -> None:
    metadata = {"name": name, "namespace": stage.namespace}
    with pytest.raises(ApiError, match=re.escape(word)):
        await stage.client.create(WorkerPool(metadata=metadata, spec=spec))


async def test_what_is_refused_is_told_in_the_status_and_done_once_it_can_be(
    stage: PoolStage,
) -> None:
    async with stage.controller():
        metadata = {"name": "pool", "namespace": stage.namespace}
        await stage.client.create(WorkerPool(metadata=metadata, spec={"replicas": 2}))
        await eventually(lambda: stage.says("Failing", "service account"), 20)
        account = ServiceAccount(metadata=ObjectMeta(name="pool", namespace=stage.namespace))
        await stage.client.create(account)
        status = await stage.settled(2)
    assert {c["type"]: c["status"] for c in status["conditions"]}["Failing"] == "False"


async def test_the_scale_subresource_changes_how_many(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=1)
        await stage.settled(1)
        await stage.scale(3)
        await stage.settled(3)


async def test_scaled_down_the_emptiest_leaves_and_only_when_its_actors_have_left(
    stage: PoolStage,
) -> None:
    async with stage.controller():
        await stage.create(replicas=2)
        await stage.settled(2)
        await stage.registered()
        where = await stage.host("a", "b", "c")
        fullest = max(set(where.values()), key=list(where.values()).count)
        (emptiest,) = set(where.values()) - {fullest}
        await stage.occupy(emptiest)
        await stage.change(replicas=1)
        await eventually(lambda: stage.is_draining(emptiest))
        assert await stage.names() == {fullest, emptiest}  # in use: it stays
        stage.busy.discard(emptiest)
        await stage.settled(1)
        assert await stage.names() == {fullest}
        moved = next(actor for actor, worker in where.items() if worker == emptiest)
        assert await stage.control.state(moved) == "SUSPENDED"
        await stage.registered()


async def test_wanted_again_a_draining_worker_is_kept(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=2)
        await stage.settled(2)
        await stage.registered()
        before = await stage.names()
        where = await stage.host("a", "b")
        await stage.occupy(*where.values())
        await stage.change(replicas=1)
        await eventually(lambda: stage.any_draining())
        await stage.change(replicas=2)
        await stage.settled(2)
        assert await stage.names() == before
        await eventually(lambda: stage.none_draining())


async def test_a_new_template_replaces_worker_by_worker_and_never_too_few_are_there(
    stage: PoolStage,
) -> None:
    async with stage.controller():
        await stage.create(replicas=3)
        await stage.settled(3)
        await stage.registered()
        old = await stage.names()
        async with stage.watched() as seen:
            await stage.change(slots=7)
            await stage.settled(3, seconds=60)
        assert not old & await stage.names()
        assert seen.most <= 4
        assert seen.fewest_ready >= 3
        hashes = {pod.metadata.labels[HASH_LABEL] for pod in await stage.pods()}
        assert len(hashes) == 1


async def test_a_deleted_pod_is_replaced_and_its_worker_forgotten(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=2)
        await stage.settled(2)
        await stage.registered()
        first = sorted(await stage.names())[0]
        await stage.delete_pod(first)
        await stage.settled(2)
        assert first not in await stage.names()
        await stage.registered()


async def test_a_deadline_that_passes_ends_a_drain(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=1, drain={"deadlineSeconds": 2})
        await stage.settled(1)
        await stage.registered()
        where = await stage.host("a")
        await stage.occupy(*where.values())
        await stage.change(replicas=0)
        await stage.settled(0)
        await stage.control.until("a", "SUSPENDED", 20)


async def test_a_deleted_pool_drains_its_workers_first(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=2)
        await stage.settled(2)
        await stage.registered()
        where = await stage.host("a")
        await stage.occupy(*where.values())
        await stage.delete()
        await eventually(lambda: stage.is_draining(where["a"]))
        assert where["a"] in await stage.names()
        stage.busy.clear()
        await eventually(stage.is_gone, 20)
        assert await stage.names() == set()
        await stage.registered()


async def test_what_ended_while_no_controller_ran_is_found_by_the_next(stage: PoolStage) -> None:
    async with stage.controller():
        await stage.create(replicas=2)
        await stage.settled(2)
        await stage.registered()
    where = await stage.host("a")
    await stage.delete_pod(where["a"])
    async with stage.controller("another"):
        await stage.settled(2)
        await stage.registered()
        await stage.control.until("a", "SUSPENDED", 20)
