"""What a cluster refuses, or cannot do: told with the object, the reason and a hint; and what it must not refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.setup_command import LEAST, Setup
from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster, kube_cluster
from tests.unit.setup.rendered import FULL, config, of_kind, rendered

SYSTEM = "/api/v1/namespaces/ate-system"
WORKERS = "/api/v1/namespaces/ate-workers"


@pytest.fixture(scope="module")
def kube() -> Iterator[KubeCluster]:
    """Without a node: the scheduler finds none."""
    with kube_cluster() as cluster:
        cluster.start_controller_manager()
        cluster.start_scheduler()
        yield cluster


@pytest.fixture
def setup(kube: KubeCluster, tmp_path: Path) -> Setup:
    """Installed, as the tests before may have left it."""
    return Setup(kube, tmp_path).installed()


async def waited(setup: Setup) -> str:
    return (await setup.run("install", *LEAST, "--timeout", "3s")).complaint


async def test_a_pod_that_no_node_takes_is_named(setup: Setup) -> None:
    said = await waited(setup)
    assert "not running after 3 s: " in said
    assert "Deployment ate-system/ateapi" in said
    assert "Pod ate-system/ateapi-" in said
    assert "Unschedulable: no nodes available to schedule pods" in said
    assert "hint: no node has room or may take it" in said


async def test_an_image_that_cannot_be_pulled_is_named(setup: Setup) -> None:
    """The test is the kubelet that says so."""
    await eventually(lambda: bool(pods(setup, "atenet-router")))
    pod = pods(setup, "atenet-router")[0]
    reason = {
        "reason": "ImagePullBackOff",
        "message": 'Back-off pulling image "localhost/atenet/atenet:0.1.0"',
    }
    status = {
        "name": "bootstrap",
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
        "state": {"waiting": reason},
    }
    setup.patch(
        f"{SYSTEM}/pods/{pod['metadata']['name']}/status",
        {"status": {"initContainerStatuses": [status]}},
    )
    said = await waited(setup)
    assert (
        f"Pod ate-system/{pod['metadata']['name']}, container bootstrap: ImagePullBackOff: Back-off"
        in said
    )
    shown = await setup.run("status")
    assert "container bootstrap: ImagePullBackOff" in shown.err
    assert "--image-registry" in shown.err


async def test_a_quota_that_is_used_up_is_named(setup: Setup) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"requests.cpu": "1m"}}}
    assert setup.create(f"{SYSTEM}/resourcequotas", quota)[0] == 201
    # The controller that counts for it is not among those of the tests.
    counted = {"hard": {"requests.cpu": "1m"}, "used": {"requests.cpu": "0"}}
    setup.patch(f"{SYSTEM}/resourcequotas/small/status", {"status": counted})
    try:
        await setup.ok("upgrade", "--no-wait", "--log-level", "debug")  # new pods
        await eventually(lambda: refused(setup, "ateapi"))
        said = (await setup.run("upgrade", "--timeout", "3s")).complaint
        assert "FailedCreate" in said
        assert "exceeded quota: small" in said
        assert "ResourceQuota" in (await setup.run("status")).err
    finally:
        with setup.kube.http() as http:
            http.delete(f"{SYSTEM}/resourcequotas/small")


async def test_pods_that_pod_security_forbids_are_named(setup: Setup) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    setup.patch(SYSTEM, {"metadata": {"labels": label}})
    # What somebody else changed is theirs until it is overruled.
    conflict = (await setup.run("install", *LEAST, "--no-wait")).complaint
    assert "Namespace ate-system: Conflict" in conflict
    assert "pod-security.kubernetes.io/enforce" in conflict
    assert "--force-conflicts" in conflict
    await setup.ok("install", *LEAST, "--no-wait", "--force-conflicts")
    assert (setup.get(SYSTEM) or {})["metadata"]["labels"][
        "pod-security.kubernetes.io/enforce"
    ] == "privileged"


async def test_who_may_not_install_is_told_what_is_needed(setup: Setup) -> None:
    nobody = setup.kube.pki.kubeconfig("somebody")
    said = (await setup.run("install", *LEAST, "--no-wait", kubeconfig=nobody)).complaint
    assert "Forbidden" in said
    assert "cluster-admin" in said


async def test_a_secret_that_is_missing_is_named_with_how_to_make_it(setup: Setup) -> None:
    said = (
        await setup.run(
            *("install", *LEAST, "--no-wait", "--database-url-secret", "none"),
            *("--snapshots-secret", "bucket"),
        )
    ).complaint
    assert "--database-url-secret: there is no Secret ate-system/none" in said
    assert "--snapshots-secret: there is no Secret ate-system/bucket" in said
    assert "kubectl -n ate-system create secret generic none --from-file=url=FILE" in said
    assert setup.create(f"{SYSTEM}/secrets", {"metadata": {"name": "half"}})[0] in (201, 409)
    said = (
        await setup.run("install", *LEAST, "--no-wait", "--database-url-secret", "half")
    ).complaint
    assert "Secret ate-system/half has no key url" in said


async def test_no_secret_is_said_or_kept_where_it_does_not_belong(setup: Setup) -> None:
    done = await setup.install()
    assert "s3cr3t" not in done.out + done.err
    for config_map in setup.items(f"{SYSTEM}/configmaps"):
        assert "s3cr3t" not in str(config_map)


@pytest.mark.parametrize(
    ("kubeconfig", "said"),
    [
        ("missing", "no usable kubeconfig"),
        ("clusters: [", "no usable kubeconfig"),
        (
            "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
            "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}], users: [{name: a, user: {}}]}",
            "the API server https://127.0.0.1:9 does not answer",
        ),
    ],
)
async def test_a_cluster_that_is_not_there_is_told(
    setup: Setup, tmp_path: Path, kubeconfig: str, said: str
) -> None:
    file = tmp_path / "kubeconfig"
    if kubeconfig != "missing":
        file.write_text(kubeconfig)
    assert said in (await setup.run("status", kubeconfig=file)).complaint


@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
@pytest.mark.parametrize("certificates", [True, False], ids=["certificates", "secrets"])
async def test_all_pods_but_the_agents_are_admitted_where_pod_security_is_restricted(
    kube: KubeCluster, tmp_path: Path, dataplane: str, certificates: bool
) -> None:
    setup = Setup(kube, tmp_path)
    name = f"strict-{dataplane}-{certificates}".lower()
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    assert (
        setup.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})[0] == 201
    )
    objects = rendered(config(dataplane, **FULL), pod_certificates=certificates)
    admitted: dict[str, str] = {}
    for workload in of_kind(objects, "Deployment", "DaemonSet"):
        spec: dict[str, Any] = workload["spec"]["template"]["spec"]
        account = {"metadata": {"name": spec["serviceAccountName"]}}
        assert setup.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)[0] == 201
        spec.pop("priorityClassName", None)
        # A Deployment's fields that a pod has not.
        for constraint in spec.get("topologySpreadConstraints", []):
            constraint.pop("matchLabelKeys")
        pod = {
            "metadata": {"name": "one", **workload["spec"]["template"]["metadata"]},
            "spec": spec,
        }
        code, answer = setup.create(f"/api/v1/namespaces/{name}/pods", pod, dry_run=True)
        admitted[workload["metadata"]["name"]] = "" if code == 201 else answer["message"]
    agents = admitted.pop("atelet")
    assert not any(admitted.values()), admitted
    assert 'violates PodSecurity "restricted' in agents
    assert "hostPath" in agents


def pods(setup: Setup, component: str) -> list[dict[str, Any]]:
    return setup.items(f"{SYSTEM}/pods?labelSelector=app.kubernetes.io/name={component}")


def refused(setup: Setup, name: str) -> bool:
    found = setup.get(f"/apis/apps/v1/namespaces/ate-system/deployments/{name}") or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(each["type"] == "ReplicaFailure" for each in conditions)
