"""What each account of an installation may ask of the API server, asked of the server itself; and that it is enough."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.setup_command import Setup
from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster, kube_cluster, without_pod_certificates
from tests.support.router_process import program

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
PLACES = ("ate-system", "ate-workers", "web", "")  # the last: the whole cluster
# (group, resource): everything that would be worth having to somebody who got in.
RESOURCES = (
    *(("", each) for each in ("pods", "pods/exec", "pods/ephemeralcontainers", "secrets")),
    *(("", each) for each in ("configmaps", "nodes", "nodes/proxy", "namespaces", "events")),
    *(("", each) for each in ("serviceaccounts", "serviceaccounts/token")),
    *(("apps", each) for each in ("deployments", "daemonsets")),
    *(
        ("rbac.authorization.k8s.io", each)
        for each in ("roles", "clusterroles", "clusterrolebindings")
    ),
    *(
        ("certificates.k8s.io", each)
        for each in ("certificatesigningrequests", "clustertrustbundles")
    ),
    *(
        ("certificates.k8s.io", f"certificatesigningrequests/{each}")
        for each in ("status", "approval")
    ),
    *(("certificates.k8s.io", f"podcertificaterequests{each}") for each in ("", "/status")),
    *(
        ("ate.dev", each)
        for each in ("workerpools", "workerpools/status", "workerpools/finalizers")
    ),
    ("coordination.k8s.io", "leases"),
    ("networking.k8s.io", "networkpolicies"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
)
READ = {"get", "list", "watch"}
EVERYWHERE = set(PLACES)

# resource -> verb -> places, without a name of an object.
CONTROLLER: dict[str, dict[str, set[str]]] = {
    **{
        each: dict.fromkeys(READ, EVERYWHERE) for each in ("nodes", "namespaces", "serviceaccounts")
    },
    "workerpools": {
        **dict.fromkeys(READ, EVERYWHERE),
        **{verb: {"ate-workers"} for verb in ("update", "patch")},
    },
    "workerpools/status": dict.fromkeys(("get", "update", "patch"), EVERYWHERE),
    "workerpools/finalizers": {"update": {"ate-workers"}},
    "pods": {
        **dict.fromkeys(READ, EVERYWHERE),
        **{verb: {"ate-workers"} for verb in ("create", "delete", "patch")},
    },
    "configmaps": {"create": EVERYWHERE},
    "events": dict.fromkeys(("create", "patch"), EVERYWHERE),
    "leases": {"create": {"ate-system"}},
}
WITH_CERTIFICATES: dict[str, dict[str, set[str]]] = {
    "podcertificaterequests": dict.fromkeys(READ, EVERYWHERE),
    "podcertificaterequests/status": dict.fromkeys(("update", "patch"), EVERYWHERE),
    "clustertrustbundles": dict.fromkeys((*READ, "create"), EVERYWHERE),
}
WITH_SECRETS: dict[str, dict[str, set[str]]] = {
    "certificatesigningrequests": dict.fromkeys(READ, EVERYWHERE),
    **{
        f"certificatesigningrequests/{each}": dict.fromkeys(("update", "patch"), EVERYWHERE)
        for each in ("status", "approval")
    },
    "secrets": {
        **{verb: {"ate-workers"} for verb in VERBS},
        "create": {"ate-workers", "ate-system"},
    },
}


@pytest.fixture(scope="module", params=["certificates", "secrets"])
def kube(request: pytest.FixtureRequest) -> Iterator[KubeCluster]:
    features = {} if request.param == "certificates" else without_pod_certificates()
    with kube_cluster(features=features) as cluster:
        cluster.start_controller_manager()
        yield cluster


@pytest.fixture(scope="module")
def setup(kube: KubeCluster, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """One installation for all: they only ask."""
    return Setup(kube, tmp_path_factory.mktemp("setup")).installed()


class Asked:
    """SubjectAccessReviews, over one connection."""

    def __init__(self, kube: KubeCluster, account: str) -> None:
        self._http = kube.http()
        self._user = f"system:serviceaccount:ate-system:{account}"

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def may(self, verb: str, group: str, resource: str, place: str = "", name: str = "") -> bool:
        what, _, sub = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": what, "subresource": sub}
        attributes |= {"namespace": place, "name": name}
        groups = [
            "system:serviceaccounts",
            "system:serviceaccounts:ate-system",
            "system:authenticated",
        ]
        spec = {"user": self._user, "groups": groups, "resourceAttributes": attributes}
        answer = self._http.post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews", json={"spec": spec}
        )
        assert answer.status_code == 201, answer.text
        return bool(answer.json()["status"]["allowed"])


def allowed(
    kube: KubeCluster, account: str, verbs: Iterable[str], places: Iterable[str]
) -> dict[str, dict[str, set[str]]]:
    """Of everything, what it may."""
    found: dict[str, dict[str, set[str]]] = {}
    with Asked(kube, account) as asked:
        for (group, resource), verb in itertools.product(RESOURCES, verbs):
            where = {place for place in places if asked.may(verb, group, resource, place)}
            if where:
                found.setdefault(resource, {})[verb] = where
    return found


async def test_the_controller_may_what_it_needs_and_nothing_else(
    setup: Setup, kube: KubeCluster
) -> None:
    more = WITH_SECRETS if kube.features else WITH_CERTIFICATES
    found = await asyncio.to_thread(allowed, kube, "ate-controller", VERBS, PLACES)
    assert found == {**CONTROLLER, **more}


@pytest.mark.parametrize("account", ["ate-api-server", "atenet-router", "atenet-egress", "atelet"])
async def test_all_others_may_nothing_but_for_agents_that_must_ask_for_a_certificate(
    setup: Setup, kube: KubeCluster, account: str
) -> None:
    verbs, places = ("get", "list", "create", "patch"), ("ate-system", "")
    found = await asyncio.to_thread(allowed, kube, account, verbs, places)
    asks = {verb: {"ate-system", ""} for verb in ("create", "get")}
    reads = {verb: {"ate-system", ""} for verb in ("get", "list")}
    if kube.features:
        assert found == ({"certificatesigningrequests": asks} if account == "atelet" else {})
    else:
        # Public: Kubernetes itself lets every account read them.
        assert found == {"clustertrustbundles": reads}


async def test_of_secrets_the_controller_has_its_own_alone(setup: Setup, kube: KubeCluster) -> None:
    with Asked(kube, "ate-controller") as asked:

        def may(name: str) -> bool:
            return asked.may("get", "", "secrets", "ate-system", name)

        names = ["pod-identity", "service-dns", "actor-identity", "interception"]
        authorities = [name for name in names if may(f"ate-authority-{name}")]
        assert authorities == ["pod-identity", "service-dns"]
        assert not may("ate-database")
        assert may("ate-serving-api") is bool(kube.features)
        assert not asked.may("delete", "", "secrets", "ate-system", "ate-authority-pod-identity")
        for name, yes in (("ate-trust", True), ("kube-root-ca.crt", False), ("mine", False)):
            assert asked.may("update", "", "configmaps", "web", name) is yes
            assert asked.may("watch", "", "configmaps", "web", name) is yes


async def test_it_signs_for_its_own_signers_alone(setup: Setup, kube: KubeCluster) -> None:
    signers = [
        *(
            f"ate.dev/{each}"
            for each in ("pod-identity", "service-dns", "actor-identity", "interception")
        ),
        *(
            "kubernetes.io/kubelet-serving",
            "kubernetes.io/kube-apiserver-client",
            "kubernetes.io/legacy-unknown",
        ),
    ]
    with Asked(kube, "ate-controller") as asked:
        signs = {
            (verb, name)
            for verb in ("sign", "approve", "attest")
            for name in signers
            if asked.may(verb, "certificates.k8s.io", "signers", "", name)
        }
    if kube.features:
        assert signs == {("sign", "ate.dev/pod-identity"), ("approve", "ate.dev/pod-identity")}
    else:
        assert signs == {
            ("sign", "ate.dev/pod-identity"),
            ("sign", "ate.dev/service-dns"),
            *(("attest", name) for name in signers if name.startswith("ate.dev/")),
        }


async def test_the_real_controller_gets_by_with_what_it_may(
    setup: Setup, kube: KubeCluster, tmp_path: Path
) -> None:
    """Not as an administrator, as its tests otherwise run it: by its own account's token."""
    kubeconfig = kube.service_account_kubeconfig("ate-system", "ate-controller")
    found = setup.get("/apis/apps/v1/namespaces/ate-system/deployments/ate-controller")
    assert found is not None
    (container,) = found["spec"]["template"]["spec"]["containers"]
    roots = tmp_path / "service-dns.pem"
    authorities = setup.get("/api/v1/namespaces/ate-system/configmaps/ate-authorities")
    assert authorities is not None
    roots.write_text(authorities["data"]["service-dns.pem"])
    moved = {
        "/run/ate/trust/service-dns.pem": str(roots),
        "/run/ate/identity/": f"{tmp_path}/",
        "api.ate-system.svc:443": "127.0.0.1:9",
        "0.0.0.0:7455": "127.0.0.1:0",
    }
    words = [*container["command"][1:], *container["args"], f"--kubeconfig={kubeconfig}"]
    for old, new in moved.items():
        words = [word.replace(old, new) for word in words]
    log = tmp_path / "controller.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            program("python"), "-c", "from atenet.controller.main import main; main()", *words,
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        for namespace in ("ate-system", "ate-workers"):
            path = f"/api/v1/namespaces/{namespace}/configmaps/ate-trust"
            await eventually(lambda path=path: setup.get(path) is not None or ended(process, log))
        await eventually(lambda: bool(pods(setup)) or ended(process, log))
        if kube.features:
            path = "/api/v1/namespaces/ate-system/secrets/ate-serving-atenet-router"
        else:
            path = "/apis/certificates.k8s.io/v1/clustertrustbundles/ate.dev:interception:trust"
        await eventually(lambda: setup.get(path) is not None or ended(process, log))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
    said = log.read_text()
    assert "forbidden" not in said.lower(), [
        line for line in said.splitlines() if "orbidden" in line
    ]


def pods(setup: Setup) -> list[Any]:
    return setup.items("/api/v1/namespaces/ate-workers/pods")


def ended(process: asyncio.subprocess.Process, log: Path) -> bool:
    assert process.returncode is None, log.read_text()
    return False
