"""Identity in a cluster that has no pod certificates: Secrets, and node agents that ask for themselves."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.cluster import find
from atenet.controller.signing.keeper import Keeper
from atenet.controller.signing.node_identity import keep_node_identity, request_identity
from atenet.controller.signing.rotate import rotate
from atenet.controller.signing.rotation import Pace, Stage
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.identity.credential import Credential, issued_by
from atenet.identity.local import pod_want
from lightkube import AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.models.rbac_v1 import PolicyRule, RoleRef, Subject
from lightkube.resources.core_v1 import Pod, Secret
from lightkube.resources.rbac_authorization_v1 import ClusterRole, ClusterRoleBinding

from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_identity import NODES, SYSTEM, WORKERS, make_pod, prepare, signing

COMPONENTS = {
    "ate-identity-ate-api-server": spiffe.API_ID,
    "ate-identity-atenet-router": spiffe.ROUTER_ID,
    "ate-identity-atenet-egress": spiffe.EGRESS_ID,
}
SERVERS = {
    "ate-serving-api": spiffe.API_SERVER_NAME,
    "ate-serving-atenet-router": spiffe.ROUTER_SERVER_NAME,
    "ate-serving-atenet-egress": spiffe.EGRESS_SERVER_NAME,
    "ate-serving-ate-credentials": spiffe.CREDENTIALS_SERVER_NAME,
}


@pytest.fixture
async def client(old_kube: KubeCluster) -> AsyncIterator[AsyncClient]:
    async with old_kube.async_client() as admin:
        await prepare(admin)
        async with signing(admin, pod_certificates=False):
            yield admin


async def credential(client: AsyncClient, name: str, namespace: str = SYSTEM) -> Credential | None:
    found = await find(client, Secret, name, namespace)
    if found is None:
        return None
    return Credential.parse(b64decode(found.data[names.BUNDLE_KEY]), Path(name))


async def waited_for(client: AsyncClient, name: str, namespace: str = SYSTEM) -> Credential:
    async def there() -> bool:
        return await credential(client, name, namespace) is not None

    await eventually(there)
    found = await credential(client, name, namespace)
    assert found is not None
    return found


async def test_components_find_theirs_in_secrets(client: AsyncClient) -> None:
    for name, spiffe_id in COMPONENTS.items():
        assert (await waited_for(client, name)).want() == pod_want(spiffe_id)
    for name, dns in SERVERS.items():
        assert (await waited_for(client, name)).want().dns == (dns,)


async def test_a_workers_secret_comes_with_its_pod_and_goes_with_it(client: AsyncClient) -> None:
    secret = "ate-identity-pool-1"
    made = await make_pod(client, "pool-1", "pool", namespace=WORKERS, pool="pool", secret=secret)
    found = await waited_for(client, secret, WORKERS)
    assert found.want() == pod_want(spiffe.pod_id(WORKERS, "pool"))
    (owner,) = (await client.get(Secret, secret, namespace=WORKERS)).metadata.ownerReferences
    assert (owner.kind, owner.uid) == ("Pod", made.metadata.uid)
    await client.delete(Pod, "pool-1", namespace=WORKERS, grace_period=0)

    async def gone() -> bool:
        return await credential(client, secret, WORKERS) is None

    await eventually(gone)


async def test_a_pod_that_asks_for_nothing_gets_nothing(client: AsyncClient) -> None:
    await make_pod(client, "plain", "pool", namespace=WORKERS, pool="pool")
    asks = {"namespace": WORKERS, "pool": "pool"}
    await make_pod(client, "asks", "pool", secret="ate-identity-asks", **asks)
    await waited_for(client, "ate-identity-asks", WORKERS)
    assert await credential(client, "ate-identity-plain", WORKERS) is None


async def test_after_a_rotation_every_secret_is_of_the_new_authority(client: AsyncClient) -> None:
    """And service names' authority is done as soon as they are, a day before their lives are over."""
    pace = Pace(propagation=timedelta(seconds=2), leaf=timedelta(seconds=2))
    await waited_for(client, "ate-serving-api")
    over = await asyncio.gather(*(rotate(client, n, pace=pace) for n in names.SIGNED_HERE))
    assert {each.stage for each in over} == {Stage.REST}
    bundles = await Keeper(client, SYSTEM).bundles()
    for secrets, authority in ((COMPONENTS, names.POD_IDENTITY), (SERVERS, names.SERVICE_DNS)):
        (current,) = bundles[authority]

        async def renewed(secrets=secrets, current=current) -> bool:
            found = [await credential(client, name) for name in secrets]
            return all(each is not None and issued_by(each.leaf, current) for each in found)

        await eventually(renewed)


@pytest.fixture
async def agent(old_kube: KubeCluster, client: AsyncClient) -> AsyncIterator[AsyncClient]:
    """The agent's of the second node, by the token of its pod."""
    pod = await make_pod(client, "atelet-x", "atelet", node=NODES[1])
    await _may_ask(client)
    kubeconfig = _pod_kubeconfig(old_kube, "atelet", pod)
    async with old_kube.async_client(kubeconfig) as found:
        yield found
    await client.delete(Pod, "atelet-x", namespace=SYSTEM, grace_period=0)


async def test_an_agent_gets_a_certificate_of_its_own_node(
    agent: AsyncClient, tmp_path: Path
) -> None:
    file, stop = tmp_path / names.BUNDLE_KEY, asyncio.Event()
    task = asyncio.create_task(keep_node_identity(agent, file, stop))
    await eventually(file.exists)
    stop.set()
    await task
    assert Credential.load(file).want() == pod_want(spiffe.ATELET_ID, NODES[1])


async def test_nobody_else_gets_an_agents_certificate(
    old_kube: KubeCluster, client: AsyncClient, agent: AsyncClient
) -> None:
    pod = await make_pod(client, "router-x", "atenet-router")
    async with old_kube.async_client(_pod_kubeconfig(old_kube, "atenet-router", pod)) as other:
        with pytest.raises(AteError, match="NotAnAgent"):
            await request_identity(other)


async def test_a_token_that_is_of_no_pod_is_not_enough(
    old_kube: KubeCluster, client: AsyncClient, agent: AsyncClient
) -> None:
    kubeconfig = old_kube.service_account_kubeconfig(SYSTEM, "atelet")
    async with old_kube.async_client(kubeconfig) as loose:
        with pytest.raises(AteError, match="NotAnAgent"):
            await request_identity(loose)


def _pod_kubeconfig(kube: KubeCluster, account: str, pod: Pod) -> Path:
    """As the token in that pod's volume."""
    meta = pod.metadata
    bound = {"kind": "Pod", "apiVersion": "v1", "name": meta.name, "uid": meta.uid}
    with kube.http() as http:
        answer = http.post(
            f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token",
            json={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"boundObjectRef": bound},
            },
        )
    assert answer.status_code == 201, answer.text
    return kube.pki.token_kubeconfig(f"pod-{meta.name}", answer.json()["status"]["token"])


async def _may_ask(client: AsyncClient) -> None:
    """To make requests is not to get certificates: here, all accounts may."""
    name = "ask-for-certificates"
    if await find(client, ClusterRole, name) is not None:
        return
    rule = PolicyRule(
        apiGroups=["certificates.k8s.io"],
        resources=["certificatesigningrequests"],
        verbs=["create", "get"],
    )
    await client.create(ClusterRole(metadata=ObjectMeta(name=name), rules=[rule]))
    await client.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            roleRef=RoleRef(apiGroup="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
            subjects=[
                Subject(
                    kind="Group",
                    name=f"system:serviceaccounts:{SYSTEM}",
                    apiGroup="rbac.authorization.k8s.io",
                )
            ],
        )
    )
