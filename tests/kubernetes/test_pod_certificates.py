"""Requests for pods' certificates, made as kubelets make them, at a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.cluster import UNREACHABLE
from atenet.controller.signing.keeper import parse_bundle
from atenet.identity import spiffe
from atenet.identity.authority import Usage
from atenet.identity.credential import Credential
from atenet.identity.local import pod_want
from lightkube import ApiError, AsyncClient
from lightkube.resources.certificates_v1 import ClusterTrustBundle
from lightkube.resources.core_v1 import ConfigMap, Pod, Secret

from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_identity import NODES, SYSTEM, WORKERS, make_pod, prepare, signing
from tests.support.kubelet_identity import Asker, condition

POD, SERVICE = names.POD_IDENTITY, names.SERVICE_DNS


@pytest.fixture
async def ready(async_admin: AsyncClient) -> AsyncIterator[AsyncClient]:
    await prepare(async_admin)
    async with signing(async_admin):
        yield async_admin


@pytest.fixture
async def kubelet(kube: KubeCluster, ready: AsyncClient) -> AsyncIterator[Asker]:
    """The first node's."""
    kubeconfig = kube.pki.kubeconfig(f"system:node:{NODES[0]}", "system:nodes")
    async with kube.async_client(kubeconfig) as client:
        yield Asker(client, ready)


OTHER = "example.com/other"
with_volumes = partial(make_pod, signers=(names.signer(POD), names.signer(SERVICE), OTHER))


def read(bundle: bytes) -> Credential:
    return Credential.parse(bundle, Path("volume"))


async def test_a_workers_pod_gets_its_certificate(ready: AsyncClient, kubelet: Asker) -> None:
    await with_volumes(ready, "pool-1", "pool", namespace=WORKERS)
    request, key = await kubelet.ask(POD, "pool-1", WORKERS)
    answered = await kubelet.answer(request)
    status = answered.status
    got = read(key + str(status.certificateChain).encode())
    assert got.want() == pod_want(spiffe.pod_id(WORKERS, "pool"))
    assert status.notAfter - status.notBefore == timedelta(hours=1)
    assert status.notBefore < status.beginRefreshAt < status.notAfter
    assert "PRIVATE" not in str(status)


async def test_it_chains_to_the_bundles_that_others_have(
    ready: AsyncClient, kubelet: Asker
) -> None:
    await with_volumes(ready, "pool-2", "pool", namespace=WORKERS)
    leaf = read(await kubelet.bundle(POD, "pool-2", WORKERS)).leaf
    await eventually(lambda: _has_trust(ready, WORKERS))
    copy = await ready.get(ConfigMap, names.TRUST_MAP, namespace=WORKERS)
    bundle = await ready.get(ClusterTrustBundle, names.cluster_bundle(POD))
    for text in (copy.data[names.trust_key(POD)], bundle.spec.trustBundle):
        (authority,) = parse_bundle(text, POD)
        leaf.verify_directly_issued_by(authority)


async def test_an_agents_names_its_node_whatever_the_node_is_called(
    kube: KubeCluster, ready: AsyncClient
) -> None:
    node = NODES[1]
    await with_volumes(ready, "atelet-1", "atelet", node=node)
    kubeconfig = kube.pki.kubeconfig(f"system:node:{node}", "system:nodes")
    async with kube.async_client(kubeconfig) as client:
        got = read(await Asker(client, ready).bundle(POD, "atelet-1", SYSTEM))
    assert got.want() == pod_want(spiffe.ATELET_ID, node)


async def test_a_services_name_is_signed_for_whoever_stands_behind_it_alone(
    ready: AsyncClient, kubelet: Asker
) -> None:
    await with_volumes(ready, "router-1", "atenet-router")
    got = read(await kubelet.bundle(SERVICE, "router-1", SYSTEM)).want()
    assert (got.uri, got.dns, got.usages) == (
        None,
        (spiffe.ROUTER_SERVER_NAME,),
        (Usage.SERVER,),
    )
    await with_volumes(ready, "sly", "pool", namespace=WORKERS)
    assert (await kubelet.refusal(SERVICE, "sly", WORKERS)).reason == "NotServing"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"podUID": "another"}, "PodReplaced"),
        ({"serviceAccountUID": "another"}, "ServiceAccountMismatch"),
        ({"serviceAccountName": "atenet-router"}, "ServiceAccountMismatch"),
        ({"nodeName": NODES[1]}, "NodeMismatch"),
        ({"nodeUID": "another"}, "NodeMismatch"),
        ({"podName": "nobody"}, "PodNotFound"),
        ({"unverifiedUserAnnotations": {"example.com/a": "b"}}, "InvalidUnverifiedUserAnnotations"),
    ],
)
async def test_a_request_that_is_not_so_is_denied_with_a_reason(
    ready: AsyncClient, changed: dict[str, object], reason: str
) -> None:
    """Asked by an administrator: a kubelet is not let through with it."""
    name = f"odd-{reason.lower()}-{next(iter(changed)).lower()}"
    await with_volumes(ready, name, "pool", namespace=WORKERS)
    told = await Asker(ready, ready).refusal(POD, name, WORKERS, **changed)
    assert told.reason == reason
    assert told.message


async def test_a_kubelet_speaks_for_no_pod_of_another_node(
    ready: AsyncClient, kubelet: Asker
) -> None:
    """The API server's own part, which we count on."""
    await with_volumes(ready, "elsewhere", "pool", namespace=WORKERS, node=NODES[1])
    with pytest.raises(ApiError):
        await kubelet.ask(POD, "elsewhere", WORKERS)


async def test_requests_of_other_signers_are_left_alone(ready: AsyncClient, kubelet: Asker) -> None:
    await with_volumes(ready, "pool-3", "pool", namespace=WORKERS)
    other, _ = await kubelet.ask("x", "pool-3", WORKERS, signerName=OTHER)
    await kubelet.bundle(POD, "pool-3", WORKERS)
    found = await ready.get(type(other), other.metadata.name, namespace=WORKERS)
    assert found.status is None or not found.status.conditions


async def test_what_was_asked_while_nobody_listened_is_answered_later(
    kube: KubeCluster, async_admin: AsyncClient
) -> None:
    await prepare(async_admin)
    await with_volumes(async_admin, "pool-4", "pool", namespace=WORKERS)
    asker = Asker(async_admin, async_admin)
    request, _ = await asker.ask(POD, "pool-4", WORKERS)
    async with signing(async_admin):
        assert condition(await asker.answer(request)).type == "Issued"


async def test_an_api_server_that_restarts_holds_nobody_up_for_long(
    kube: KubeCluster, ready: AsyncClient, kubelet: Asker
) -> None:
    await with_volumes(ready, "pool-5", "pool", namespace=WORKERS)
    await kubelet.bundle(POD, "pool-5", WORKERS)
    kube.restart_api_server()
    await eventually(lambda: _answers(ready))
    assert await kubelet.bundle(POD, "pool-5", WORKERS)


async def test_trust_goes_where_it_is_asked_for_and_nowhere_else(ready: AsyncClient) -> None:
    await eventually(lambda: _has_trust(ready, WORKERS))
    copy = await ready.get(ConfigMap, names.TRUST_MAP, namespace=WORKERS)
    assert set(copy.data) == {names.trust_key(each) for each in names.ALL_AUTHORITIES}
    assert "PRIVATE" not in str(copy.data)
    assert await _has_trust(ready, SYSTEM)
    assert not await _has_trust(ready, "bystander")
    await ready.delete(ConfigMap, names.TRUST_MAP, namespace=WORKERS)
    await eventually(lambda: _has_trust(ready, WORKERS))


async def test_the_controllers_own_certificate_is_a_file_from_the_start(
    async_admin: AsyncClient, tmp_path: Path
) -> None:
    await prepare(async_admin)
    file = tmp_path / names.BUNDLE_KEY
    async with signing(async_admin, own_credential=file):
        await eventually(file.exists)
    assert Credential.load(file).want() == pod_want(spiffe.CONTROLLER_ID)


async def test_authorities_are_made_once(async_admin: AsyncClient) -> None:
    await prepare(async_admin)
    first = await _keys(async_admin)
    await prepare(async_admin)
    assert await _keys(async_admin) == first


async def _keys(client: AsyncClient) -> list[dict[str, str]]:
    found = [
        await client.get(Secret, names.authority_secret(each), namespace=SYSTEM)
        for each in names.ALL_AUTHORITIES
    ]
    return [dict(each.data) for each in found]


async def _has_trust(client: AsyncClient, namespace: str) -> bool:
    try:
        await client.get(ConfigMap, names.TRUST_MAP, namespace=namespace)
    except ApiError:
        return False
    return True


async def _answers(client: AsyncClient) -> bool:
    try:
        await client.get(Pod, "pool-5", namespace=WORKERS)
    except UNREACHABLE:
        return False
    return True
