"""An installation's life on a real API server: upgrades, what others set, interruptions, waiting, its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from atenet.errors import AteError
from atenet.setup.api import Api
from lightkube import AsyncClient

from tests.kubernetes.setup_command import LEAST, Setup
from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster, kube_cluster
from tests.support.kube_nodes import simulated_nodes
from tests.unit.setup.rendered import config, of_kind, rendered

FULL = Path(__file__).with_name("values-full.yaml")


@pytest.fixture(scope="module")
def kube() -> Iterator[KubeCluster]:
    with kube_cluster() as cluster:
        cluster.start_controller_manager()
        yield cluster


@pytest.fixture
async def setup(kube: KubeCluster, tmp_path: Path) -> AsyncIterator[Setup]:
    made = Setup(kube, tmp_path)
    yield made
    await made.ok("uninstall", "--yes")


async def test_a_configuration_with_everything_in_it_is_accepted(setup: Setup) -> None:
    await setup.install()
    for name, key in (("ate-bucket", "AWS_ACCESS_KEY_ID"), ("ate-seal", "seal")):
        data = {key: "eA==", "AWS_SECRET_ACCESS_KEY": "eA=="}
        secret = {"metadata": {"name": name}, "data": data}
        assert setup.create("/api/v1/namespaces/ate-system/secrets", secret)[0] == 201
    await setup.install("--values", str(FULL))
    assert len(setup.items("/apis/ate.dev/v1alpha1/workerpools")) == 2
    service = setup.get("/api/v1/namespaces/ate-system/services/api")
    assert service is not None
    assert {port["name"] for port in service["spec"]["ports"]} == {"grpc", "issuer", "tokens"}


async def test_an_upgrade_keeps_what_was_given_before(setup: Setup) -> None:
    await setup.install("--api-replicas", "4", "--log-level", "debug")
    await setup.ok("upgrade", "--no-wait", "--log-level", "warning")
    found = setup.get("/apis/apps/v1/namespaces/ate-system/deployments/ateapi")
    assert found is not None
    assert found["spec"]["replicas"] == 4
    assert "--log-level=warning" in found["spec"]["template"]["spec"]["containers"][0]["args"]


async def test_an_upgrade_of_nothing_is_refused(kube: KubeCluster, tmp_path: Path) -> None:
    done = await Setup(kube, tmp_path).run("upgrade", "--no-wait")
    assert "atenet is not installed" in done.complaint


async def test_what_others_set_beside_us_stays(setup: Setup) -> None:
    await setup.install()
    path = "/apis/apps/v1/namespaces/ate-system/deployments/atenet-router"
    setup.patch(path, {"metadata": {"annotations": {"ops.example/note": "mine"}}})
    await setup.install()
    found = setup.get(path)
    assert found is not None
    assert found["metadata"]["annotations"]["ops.example/note"] == "mine"


async def test_a_pool_that_is_left_out_goes_only_when_that_is_said(setup: Setup) -> None:
    values = setup.directory / "values.yaml"
    values.write_text("pools: [{name: general}, {name: big}]\n")
    await setup.install("--values", str(values))
    assert "stays" in (await setup.install()).err
    names = {each["metadata"]["name"] for each in setup.items("/apis/ate.dev/v1alpha1/workerpools")}
    assert names == {"general", "big"}
    await setup.install("--yes")
    names = {each["metadata"]["name"] for each in setup.items("/apis/ate.dev/v1alpha1/workerpools")}
    assert names == {"general"}


async def test_an_uninstall_asks_first_and_says_what_goes(setup: Setup) -> None:
    await setup.install()
    done = await setup.run("uninstall")  # nobody answers
    assert "will be removed: WorkerPool ate-workers/general" in done.err
    assert "will be removed: Secret ate-system/ate-authority-interception" in done.err
    assert setup.get("/apis/apps/v1/namespaces/ate-system/deployments/ateapi") is not None


async def test_a_namespace_that_was_there_before_stays_as_it_was(
    kube: KubeCluster, tmp_path: Path
) -> None:
    setup = Setup(kube, tmp_path)
    with setup.namespace("ate-system", team="platform"):
        secret = {"metadata": {"name": "mine"}, "data": {"a": "eA=="}}
        assert setup.create("/api/v1/namespaces/ate-system/secrets", secret)[0] == 201
        before = setup.everything()
        await setup.install()
        await setup.ok("uninstall", "--yes")
        found = setup.get("/api/v1/namespaces/ate-system")
        assert found is not None
        assert found["metadata"]["labels"] == {
            "team": "platform",
            "kubernetes.io/metadata.name": "ate-system",
        }

        def left() -> set[str]:
            return {key for key, uid in setup.everything().items() if before.get(key) != uid}

        # What Deployments made goes with them, by the cluster's garbage collection.
        await eventually(lambda: not left())
    await eventually(lambda: setup.get("/api/v1/namespaces/ate-system") is None)


@pytest.mark.parametrize("after", [0, 1, 20])
async def test_an_install_that_was_interrupted_is_finished_by_the_next_and_removed_whole(
    kube: KubeCluster, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup(kube, tmp_path)
    before = setup.everything()
    whole, left = Api.apply, [after]

    def until(self: Api, *args: Any, **more: Any) -> Any:
        if not left[0]:
            raise AteError("the cable was pulled")
        left[0] -= 1
        return whole(self, *args, **more)

    with monkeypatch.context() as broken:
        broken.setattr(Api, "apply", until)
        done = await setup.run("install", *LEAST, *setup.database, "--no-wait")
        assert "cable" in done.complaint
    await setup.ok("uninstall", "--yes")
    assert setup.everything() == before
    with monkeypatch.context() as broken:
        left[0] = after
        broken.setattr(Api, "apply", until)
        await setup.run("install", *LEAST, *setup.database, "--no-wait")
    await setup.install()
    count = len(rendered(config()))
    again = await setup.install()
    assert again.out.startswith(f"{count} unchanged in "), again.out
    await setup.ok("uninstall", "--yes")


async def test_it_waits_until_all_of_it_runs_and_status_says_so(
    setup: Setup, kube: KubeCluster, async_admin: AsyncClient
) -> None:
    """The nodes only say that pods run."""
    await setup.install()
    waiting = await setup.run("status")
    assert "Deployment ate-system/ateapi          0 of 2" in waiting.out
    async with simulated_nodes(async_admin, ["setup-1", "setup-2"]):
        done = await setup.ok("install", *LEAST, "--timeout", "60s")
        for kind in ("Deployment", "DaemonSet"):
            for each in of_kind(rendered(config()), kind):
                assert f"{kind} ate-system/{each['metadata']['name']}: 2 of 2 ready" in done.err
        assert "DaemonSet ate-system/atelet           2 of 2" in (await setup.run("status")).out
        # While there are nodes that end its pods; without them all of their grace would be waited for.
        await setup.ok("uninstall", "--yes")
    for name in ("setup-1", "setup-2"):
        with kube.http() as http:
            http.delete(f"/api/v1/nodes/{name}")
            http.delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")
