"""ate-credentials on a real API server: rights, what is left when it goes, and a Secret's way to the gateway."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.identity import pem, spiffe
from atenet.proto import credprovider_pb2 as pb
from atenet.proto import credprovider_pb2_grpc

from tests.kubernetes.setup_command import LEAST, Setup
from tests.kubernetes.test_setup_rights import VERBS, Asked, allowed
from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster, kube_cluster
from tests.support.kube_files import KubeFiles
from tests.support.kube_pod import KubePod, running
from tests.support.kube_service import kube_service

ALLOW = ("--credential-allow", "team=team-secrets,other=shared-secrets")
PLACES = ("ate-system", "ate-workers", "team-secrets", "shared-secrets", "web", "")
API_SERVER = ("127.0.0.7", 443)
ACTOR = "spiffe://substrate-actor.local/actor/{}"
URI = "ate-secret://kubernetes.io/secret/{}"


@pytest.fixture(scope="module")
def kube() -> Iterator[KubeCluster]:
    with kube_cluster() as cluster:
        cluster.start_controller_manager()
        yield cluster


@pytest.fixture
async def setup(kube: KubeCluster, tmp_path: Path) -> AsyncIterator[Setup]:
    """The namespaces with actors' secrets are there, and atenet is not."""
    made = Setup(kube, tmp_path)
    for name in ("team-secrets", "shared-secrets"):
        if made.get(f"/api/v1/namespaces/{name}") is None:
            made.create("/api/v1/namespaces", {"metadata": {"name": name}})
            data = {"token": base64.b64encode(f"of {name}".encode()).decode()}
            secret = {"metadata": {"name": "api"}, "data": data}
            assert made.create(f"/api/v1/namespaces/{name}/secrets", secret)[0] == 201
    yield made
    await made.ok("uninstall", "--yes")


async def test_it_may_read_secrets_of_the_namespaces_that_are_named_and_nothing_else(
    setup: Setup, kube: KubeCluster
) -> None:
    await setup.install(*ALLOW)
    found = await asyncio.to_thread(allowed, kube, "ate-credentials", VERBS, PLACES)
    # Trust bundles are public: Kubernetes itself lets every account read them.
    found.pop("clustertrustbundles")
    assert found == {"secrets": {"get": {"team-secrets", "shared-secrets"}}}


async def test_a_namespace_that_is_not_named_any_more_is_closed_and_an_empty_list_removes_it_all(
    setup: Setup, kube: KubeCluster
) -> None:
    await setup.install(*ALLOW)
    assert "Deployment ate-system/ate-credentials" in (await setup.run("status")).out
    await setup.ok("upgrade", "--no-wait", "--credential-allow", "team=team-secrets")
    with Asked(kube, "ate-credentials") as asked:
        assert asked.may("get", "", "secrets", "team-secrets")
        assert not asked.may("get", "", "secrets", "shared-secrets")
    await setup.ok("upgrade", "--no-wait", "--credential-allow", "")
    assert "ate-credentials" not in (await setup.run("status")).out
    # Pods go with their Deployment, soon after it.
    await eventually(lambda: not [each for each in setup.everything() if "ate-credentials" in each])


async def test_an_uninstall_takes_its_rights_and_leaves_the_secrets(
    setup: Setup, kube: KubeCluster
) -> None:
    before = setup.everything()
    await setup.install(*ALLOW)
    await setup.ok("uninstall", "--yes")
    assert left(setup, before) == set()
    for name in ("team-secrets", "shared-secrets"):
        assert setup.get(f"/api/v1/namespaces/{name}/secrets/api") is not None


async def test_a_namespace_that_is_not_there_is_named_before_anything_is_applied(
    setup: Setup,
) -> None:
    before = setup.everything()
    wanted = ("--credential-allow", "team=nowhere", *LEAST)
    for words in ((*setup.database, "--no-wait"), ("--dry-run=server",)):
        done = await setup.run("install", *wanted, *words)
        assert "--credential-allow: there is no namespace nowhere" in done.complaint
        assert "kubectl create namespace nowhere" in done.complaint
    assert setup.everything() == before


async def test_the_rendered_pod_gives_the_gateway_a_secret_by_its_own_accounts_token(
    setup: Setup, kube: KubeCluster, tmp_path: Path, root: None
) -> None:
    await setup.install(*ALLOW)
    files = KubeFiles(passable(tmp_path) / "files")
    async with provider(setup, kube, files, tmp_path) as pod, kube_service(7447, late=0) as way:
        way.add(pod)

        async def fetch(name: str, actor: str, uri: str) -> bytes:
            return await fetched(way.address, files, name, ACTOR.format(actor), URI.format(uri))

        async def refused(name: str, actor: str, uri: str) -> grpc.StatusCode:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await fetch(name, actor, uri)
            return caught.value.code()

        gateway, router = "atenet-egress", "atenet-router"
        assert await fetch(gateway, "team/a", "team-secrets/api/token") == b"of team-secrets"
        assert await fetch(gateway, "other/a", "shared-secrets/api/token") == b"of shared-secrets"
        denied, missing = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND
        assert await refused(gateway, "team/a", "shared-secrets/api/token") is denied
        assert await refused(gateway, "team/a", "ate-system/ate-database/url") is denied
        assert await refused(gateway, "team/a", "team-secrets/none/token") is missing
        assert await refused(router, "team/a", "team-secrets/api/token") is denied
        assert "of team-secrets" not in pod.containers["credentials"].log
        # The right is the cluster's to take, whatever the program still believes.
        with kube.http() as http:
            path = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-secrets/rolebindings"
            assert http.delete(f"{path}/ate-credentials").status_code == 200
        assert await refused(gateway, "team/a", "team-secrets/api/token") is denied
        assert await pod.terminate() == {"credentials": 0}


@asynccontextmanager
async def provider(
    setup: Setup, kube: KubeCluster, files: KubeFiles, directory: Path
) -> AsyncIterator[KubePod]:
    """As the API server has the Deployment, with a token that it issued."""
    found = setup.get("/apis/apps/v1/namespaces/ate-system/deployments/ate-credentials")
    assert found is not None
    spec = found["spec"]["template"]["spec"]
    for container in spec["containers"]:  # the API server leaves out what is false
        for mount in container["volumeMounts"]:
            mount.setdefault("readOnly", False)
    token = kube.service_account_token("ate-system", "ate-credentials")
    content = {"token": token.encode(), "ca.crt": kube.pki.ca.read_bytes()}
    volumes = {**files.volumes(spec, {}), "token": files.write(spec, "token", content)}
    host, _, port = kube.server.removeprefix("https://").rpartition(":")
    names = {"kubernetes.default.svc": API_SERVER[0]}
    ways = {API_SERVER: (host, int(port))}
    async with running(spec, volumes, directory / "pod", names, ways) as pod:
        yield pod


async def fetched(
    address: tuple[str, int], files: KubeFiles, account: str, actor: str, uri: str
) -> bytes:
    """As the pods of this account."""
    bundle = files.bundle("pod-identity", uri=spiffe.pod_id("ate-system", account))
    roots = pem.certificate_pem(files.authorities["service-dns"].certificate)
    credentials = grpc.ssl_channel_credentials(roots, bundle, bundle)
    options = [("grpc.ssl_target_name_override", spiffe.CREDENTIALS_SERVER_NAME)]
    where = f"{address[0]}:{address[1]}"
    async with grpc.aio.secure_channel(where, credentials, options=options) as channel:
        stub = credprovider_pb2_grpc.CredentialProviderStub(channel)
        request = pb.FetchSecretRequest(uri=uri, actor_spiffe_id=actor)
        answer: pb.FetchSecretResponse = await stub.FetchSecret(request, timeout=20)
        return answer.opaque_bytes


def passable(directory: Path) -> Path:
    """Pods' accounts are others than this one, and come by here."""
    for each in (directory, *list(directory.parents)[:2]):
        each.chmod(0o755)
    return directory


def left(setup: Setup, before: dict[str, str]) -> set[str]:
    """What was not there before."""
    return {key for key, uid in setup.everything().items() if before.get(key) != uid}
