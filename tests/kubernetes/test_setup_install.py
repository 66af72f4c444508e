"""`ate-setup` on a real API server: everything is accepted, twice is once, a switch prunes, an end leaves nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from atenet.setup.kinds import KINDS, Reference, reference

from tests.kubernetes.setup_command import LEAST, Setup
from tests.support.kube_cluster import KubeCluster, kube_cluster, without_pod_certificates
from tests.unit.setup.rendered import config, rendered

FULL = Path(__file__).with_name("values-full.yaml")


@pytest.fixture(scope="module", params=["certificates", "secrets"])
def kube(request: pytest.FixtureRequest) -> Iterator[KubeCluster]:
    """Both kinds of clusters: with pod certificates, and without."""
    features = {} if request.param == "certificates" else without_pod_certificates()
    with kube_cluster(features=features) as cluster:
        cluster.start_controller_manager()
        yield cluster


@pytest.fixture
async def setup(kube: KubeCluster, tmp_path: Path) -> AsyncIterator[Setup]:
    made = Setup(kube, tmp_path)
    yield made
    await made.ok("uninstall", "--yes")


def serves_certificates(kube: KubeCluster) -> bool:
    return not kube.features


def applied(setup: Setup) -> dict[Reference, dict[str, Any]]:
    """Every object of the kinds that ate-setup applies, with its labels."""
    with_labels = {}
    for kind in KINDS.values():
        prefix = "/api/v1" if kind.api == "v1" else f"/apis/{kind.api}"
        query = "labelSelector=app.kubernetes.io/managed-by=ate-setup"
        if kind.name in ("Pod", "ReplicaSet"):
            continue
        for each in setup.items(f"{prefix}/{kind.plural}?{query}"):
            with_labels[reference({**each, "kind": kind.name})] = each
    return with_labels


def wanted(dataplane: str, kube: KubeCluster) -> set[Reference]:
    """What a fresh installation consists of."""
    objects = rendered(config(dataplane), pod_certificates=serves_certificates(kube))
    besides = {
        Reference("ConfigMap", "ate-setup-inventory", "ate-system"),
        Reference("Secret", "ate-database", "ate-system"),
    }
    return set(map(reference, objects)) | besides


@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
async def test_every_object_is_accepted_and_a_second_time_changes_nothing(
    setup: Setup, kube: KubeCluster, dataplane: str, record_property: Any
) -> None:
    first = await setup.install("--atenet-dataplane", dataplane)
    record_property("install", first.out)
    assert set(applied(setup)) == wanted(dataplane, kube)
    again = await setup.install("--atenet-dataplane", dataplane)
    count = len(wanted(dataplane, kube)) - 2
    assert again.out.startswith(f"{count} unchanged in "), again.out


async def test_a_rehearsal_asks_the_server_and_changes_nothing(setup: Setup) -> None:
    before = setup.everything()
    done = await setup.ok("install", *LEAST, "--dry-run=server")
    assert "would be accepted" in done.out
    assert setup.everything() == before
    await setup.install()
    objects = len(rendered(config(), pod_certificates=serves_certificates(setup.kube)))
    assert (
        f"{objects} would be accepted"
        in (await setup.ok("install", *LEAST, "--dry-run=server")).out
    )


async def test_a_switch_prunes_what_the_other_dataplane_leaves_and_a_switch_back_too(
    setup: Setup, kube: KubeCluster
) -> None:
    await setup.install("--router-replicas", "3")
    for dataplane in ("agentgateway", "envoy", "agentgateway"):
        await setup.ok("upgrade", "--no-wait", "--atenet-dataplane", dataplane)
        assert set(applied(setup)) == wanted(dataplane, kube)
        fresh = {
            reference(each): each
            for each in rendered(
                config(dataplane, routerReplicas=3), pod_certificates=serves_certificates(kube)
            )
        }
        for which, live in applied(setup).items():
            if which.kind == "Deployment":
                assert live["spec"]["replicas"] == fresh[which]["spec"]["replicas"]
                for part in ("containers", "initContainers"):
                    names = [each["name"] for each in live_pod(live).get(part, [])]
                    assert names == [each["name"] for each in live_pod(fresh[which]).get(part, [])]
                args = [each["args"] for each in live_pod(live)["containers"]]
                assert args == [each["args"] for each in live_pod(fresh[which])["containers"]]
            if which.kind == "Service":
                ports = {(each["port"], each["targetPort"]) for each in live["spec"]["ports"]}
                assert ports == {
                    (each["port"], each["targetPort"]) for each in fresh[which]["spec"]["ports"]
                }


def live_pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
async def test_an_uninstall_leaves_nothing(
    kube: KubeCluster, tmp_path: Path, dataplane: str
) -> None:
    setup = Setup(kube, tmp_path)
    before = setup.everything()
    await setup.install("--atenet-dataplane", dataplane)
    assert len(setup.everything()) > len(before) + 30
    await setup.ok("uninstall", "--yes")
    left = {key: uid for key, uid in setup.everything().items() if before.get(key) != uid}
    assert not left
    assert "nothing of atenet" in (await setup.ok("uninstall", "--yes")).out


async def test_pod_certificates_are_asked_of_the_cluster_or_refused(
    setup: Setup, kube: KubeCluster
) -> None:
    done = await setup.run(
        "install", *LEAST, *setup.database, "--no-wait", "--pod-certificates", "on"
    )
    if serves_certificates(kube):
        assert done.error is None
    else:
        assert "serves no PodCertificateRequest" in done.complaint
    await setup.install("--pod-certificates", "off")
    found = setup.get("/apis/apps/v1/namespaces/ate-system/deployments/ateapi")
    assert found is not None
    (identity,) = (v for v in live_pod(found)["volumes"] if v["name"] == "identity")
    assert identity["secret"]["secretName"] == "ate-identity-ate-api-server"
