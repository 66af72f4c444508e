"""The cluster of the tests is one: it decides, admits, schedules and controls as any other."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube import ApiError, AsyncClient, Client
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec, Toleration
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, ServiceAccount

from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_nodes import simulated_nodes


def _served(cluster: KubeCluster, group_version: str) -> set[str]:
    with cluster.http() as http:
        answer = http.get(f"/apis/{group_version}")
    return {resource["name"] for resource in answer.json()["resources"]}


def _pod(name: str, **spec: Any) -> Pod:
    container = Container(name="main", image="example.invalid/image")
    return Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=[container], **spec))


def test_certificates_of_pods_and_trust_bundles_are_there_or_switched_off(
    kube: KubeCluster, old_kube: KubeCluster
) -> None:
    resources = {"podcertificaterequests", "clustertrustbundles"}
    assert resources <= _served(kube, "certificates.k8s.io/v1")
    assert not resources & _served(old_kube, "certificates.k8s.io/v1")
    assert "certificatesigningrequests" in _served(old_kube, "certificates.k8s.io/v1")


def test_whom_rbac_does_not_know_it_refuses(kube: KubeCluster) -> None:
    stranger = kube.client(kube.pki.kubeconfig("stranger"))
    with pytest.raises(ApiError) as refused:
        stranger.get(ConfigMap, "any", namespace="default")
    assert refused.value.status.code == 403


def test_a_service_account_s_token_is_taken_for_it(kube: KubeCluster, admin: Client) -> None:
    admin.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
    kubeconfig = kube.service_account_kubeconfig("default", "robot")
    with pytest.raises(ApiError) as refused:
        kube.client(kubeconfig).get(ConfigMap, "any", namespace="default")
    assert "system:serviceaccount:default:robot" in refused.value.status.message


def test_pod_security_is_enforced_where_a_namespace_says_so(admin: Client) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    admin.create(Namespace(metadata=ObjectMeta(name="strict", labels=labels)))
    admin.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="strict")))
    with pytest.raises(ApiError) as refused:
        admin.create(_pod("root", hostNetwork=True), namespace="strict")
    assert "PodSecurity" in refused.value.status.message


async def test_a_deployment_comes_up_on_simulated_nodes_and_moves_when_one_is_lost(
    kube: KubeCluster, async_admin: AsyncClient
) -> None:
    kube.start_controller_manager(node_grace="6s")
    kube.start_scheduler()
    pod = _pod("unused").spec
    assert pod is not None
    # Seconds, not minutes: what a default cluster does is the same.
    pod.tolerations = [
        Toleration("NoExecute", f"node.kubernetes.io/{taint}", "Exists", 1)
        for taint in ("unreachable", "not-ready")
    ]
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}), spec=pod)
    spec = DeploymentSpec(
        replicas=4, selector=LabelSelector(matchLabels={"app": "web"}), template=template
    )

    async def spread_over(*names: str) -> bool:
        where = [
            pod.spec.nodeName
            async for pod in async_admin.list(Pod, labels={"app": "web"}, namespace="default")
            if pod.metadata.deletionTimestamp is None and pod.status.phase == "Running"
        ]
        return len(where) == 4 and set(where) == set(names)

    async with simulated_nodes(async_admin, ["one", "two"], bind=False) as nodes:
        await async_admin.create(
            Deployment(metadata=ObjectMeta(name="web", namespace="default"), spec=spec)
        )
        await eventually(lambda: spread_over("one", "two"), 60)
        await nodes.lose("one")
        await eventually(lambda: spread_over("two"), 60)
        node = await async_admin.get(Node, "one")
        assert "node.kubernetes.io/unreachable" in {t.key for t in node.spec.taints}


def test_what_it_stored_is_there_after_the_api_server_was_killed(
    kube: KubeCluster, admin: Client
) -> None:
    admin.create(ConfigMap(metadata=ObjectMeta(name="kept", namespace="default")))
    kube.restart_api_server()
    assert kube.client().get(ConfigMap, "kept", namespace="default")
