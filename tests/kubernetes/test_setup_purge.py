"""`ate-setup uninstall --purge-nodes` on a real API server; nodes only say that pods run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from atenet.errors import AteError
from atenet.setup import purging
from atenet.setup.objects.purge import purge
from lightkube import AsyncClient
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Pod

from tests.kubernetes.setup_command import LEAST, Setup
from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster, kube_cluster
from tests.support.kube_nodes import simulated_nodes
from tests.unit.setup.rendered import config

NODES = ["purge-1", "purge-2"]
PURGED = "/apis/apps/v1/namespaces/ate-system/daemonsets/ate-purge"


@pytest.fixture(scope="module")
def kube() -> Iterator[KubeCluster]:
    with kube_cluster() as cluster:
        cluster.start_controller_manager()
        yield cluster


@pytest.fixture
def setup(kube: KubeCluster, tmp_path: Path) -> Setup:
    return Setup(kube, tmp_path)


async def test_without_it_what_stays_on_nodes_is_said(setup: Setup) -> None:
    await setup.install()
    done = await setup.ok("uninstall", "--yes")
    assert "nodes keep /var/lib/ate" in done.err
    assert "rm -rf /var/lib/ate /run/ate" in done.err


async def test_every_node_is_emptied_when_nothing_else_runs_and_nothing_of_it_is_left(
    setup: Setup, async_admin: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = setup.everything()
    seen: list[set[str]] = []
    apply = purging.purge_nodes

    def watched(*args: Any, **how: Any) -> list[str]:
        left = apply(*args, **how)
        seen.append({each for each in setup.everything() if each.startswith("pods ")})
        return left

    monkeypatch.setattr("atenet.setup.removing.purge_nodes", watched)
    async with simulated_nodes(async_admin, NODES):
        during = setup.everything()
        await setup.ok("install", *LEAST, *setup.database, "--timeout", "60s")
        done = await setup.ok("uninstall", "--yes", "--purge-nodes")
        assert "DaemonSet ate-system/ate-purge: 2 of 2 nodes" in done.err
        assert "nodes keep" not in done.err
        # By then no other pod was there any more.
        assert not [each for each in seen[0] if "ate-purge" not in each]
        assert setup.get(PURGED) is None
        left = {key for key, uid in setup.everything().items() if during.get(key) != uid}
        assert not left
    assert before.keys() <= setup.everything().keys()


async def test_a_node_that_does_not_answer_is_named_and_all_else_is_removed(
    setup: Setup, async_admin: AsyncClient
) -> None:
    def becomes_ready(pod: Pod) -> bool:
        of_purge = "ate-purge" in str(pod.metadata.name if pod.metadata else "")
        return not (of_purge and pod.spec is not None and pod.spec.nodeName == "slow-2")

    names = ["slow-1", "slow-2"]
    async with simulated_nodes(async_admin, names, becomes_ready=becomes_ready):
        before = setup.everything()
        await setup.install()
        done = await setup.run("uninstall", "--yes", "--purge-nodes", "--purge-timeout", "5s")
        assert "all is removed but what is on these nodes: slow-2" in done.complaint
        assert "rm -rf /var/lib/ate" in done.complaint
        left = {key for key, uid in setup.everything().items() if before.get(key) != uid}
        assert not left


async def test_what_empties_nodes_does_not_outlive_a_command_that_fails(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> tuple[bool, str]:
        raise AteError("the API server is away")

    monkeypatch.setattr(purging, "progress", fails)
    await setup.install()
    done = await setup.run("uninstall", "--yes", "--purge-nodes")
    assert "the API server is away" in done.complaint
    assert setup.get(PURGED) is None
    monkeypatch.undo()
    await setup.ok("uninstall", "--yes")


async def test_what_a_killed_uninstall_left_is_gone_before_anything_is_installed(
    setup: Setup, async_admin: AsyncClient
) -> None:
    async with simulated_nodes(async_admin, ["left-1"]):
        await setup.install()
        await async_admin.create(DaemonSet.from_dict(purge(config())))
        await eventually(lambda: bool(_purge_pods(setup)))
        done = await setup.install()
        removed = done.err.index("removing DaemonSet ate-system/ate-purge, which an uninstall left")
        assert removed < done.err.index("applying")
        assert setup.get(PURGED) is None
        assert not _purge_pods(setup)
        await setup.ok("uninstall", "--yes")


def _purge_pods(setup: Setup) -> list[str]:
    return [
        each for each in setup.everything() if "ate-purge-" in each and each.startswith("pods ")
    ]


async def test_it_asks_first_and_says_what_goes_on_nodes(setup: Setup) -> None:
    await setup.install()
    done = await setup.run("uninstall", "--purge-nodes")  # nobody answers
    assert "will be removed: on every node: all in /var/lib/ate" in done.err
    assert setup.get("/apis/apps/v1/namespaces/ate-system/deployments/ateapi") is not None
    await setup.ok("uninstall", "--yes")


async def test_where_nothing_is_installed_it_says_how_to_do_it_by_hand(setup: Setup) -> None:
    done = await setup.run("uninstall", "--yes", "--purge-nodes")
    assert "--purge-nodes: nodes were not looked at" in done.complaint
    assert "rm -rf /var/lib/ate" in done.complaint
