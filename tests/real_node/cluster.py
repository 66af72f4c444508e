"""What the node belongs to: the control plane, a database, a bucket, names. All at the node's address."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.real_node.ground import ADDRESS, NAMES, ORIGIN
from tests.real_node.names import ClusterNames
from tests.real_node.node import NAME, RealNode
from tests.support.kube_cluster import CONTROLLERS, KubeCluster
from tests.support.postgres import PASSWORD, postgres_server
from tests.support.s3_server import S3Server, s3_server

Object = dict[str, Any]
ORIGINS: Mapping[str, str] = {"origin.example": ORIGIN, "other.example": ORIGIN}


@dataclass(frozen=True)
class Cluster:
    kube: KubeCluster
    node: RealNode
    bucket: str
    s3: S3Server
    database: str

    def get(self, path: str) -> Object | None:
        with self.kube.http() as http:
            answer = http.get(path)
        return None if answer.status_code == 404 else dict(answer.json())

    def items(self, path: str) -> list[Object]:
        return list((self.get(path) or {}).get("items") or [])

    def apply(self, path: str, made: Object) -> None:
        """As it is, or as it was made by an earlier call."""
        with self.kube.http() as http:
            answer = http.post(path, json=made)
        assert answer.status_code in (201, 409), answer.text

    def patch(self, path: str, change: Object) -> None:
        """A merge."""
        kind = {"content-type": "application/merge-patch+json"}
        with self.kube.http() as http:
            answer = http.patch(path, json=change, headers=kind)
        assert answer.status_code == 200, answer.text

    def pods(self, namespace: str) -> list[Object]:
        return self.items(f"/api/v1/namespaces/{namespace}/pods")

    def pod_log(self, namespace: str, pod: str, container: str, lines: int = 12) -> str:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        with self.kube.http() as http:
            return http.get(path, params={"container": container, "tailLines": lines}).text


def until(what: str, there: Callable[[], Any], seconds: float, why: Callable[[], str]) -> Any:
    """What `there` gives, once it is something. Fails with `why`."""
    deadline = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s; {why()}"
        threading.Event().wait(0.5)
    return found


@contextmanager
def cluster(state: Path, programs: Path, kube_node: Path) -> Iterator[Cluster]:
    """containerd runs; kubelet and kube-proxy are yet to be started."""
    directory = state / "kube"
    directory.mkdir()
    kube = KubeCluster(directory, address=ADDRESS)
    proof = kube.pki.certificate(kube.pki.kubeconfig("api-to-kubelet", "system:masters").stem)
    kube.flags = [
        f"--kubelet-client-certificate={proof[0]}",
        f"--kubelet-client-key={proof[1]}",
        "--kubelet-preferred-address-types=InternalIP",
    ]
    (state / "node").mkdir()
    node = RealNode(state / "node", programs, kube_node, kube.pki.ca)
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(postgres_server(ADDRESS))
        s3 = stack.enter_context(s3_server(state / "s3.log", ADDRESS))
        name = urlsplit(database.database()).path[1:]
        stack.callback(kube.stop)
        kube.start()
        kube.start_controller_manager(CONTROLLERS)
        kube.start_scheduler()
        node.start_containerd()
        made = Cluster(
            kube,
            node,
            bucket=s3.bucket("actors"),
            s3=s3,
            database=f"postgresql://ate:{PASSWORD}@{ADDRESS}:5432/{name}",
        )
        stack.callback(ClusterNames(NAMES, _service(made), ORIGINS).close)
        yield made


def _service(made: Cluster) -> Callable[[str, str], list[str]]:
    def addresses(namespace: str, name: str) -> list[str]:
        found = made.get(f"/api/v1/namespaces/{namespace}/services/{name}")
        if found is None:
            return []
        address = str(found["spec"].get("clusterIP"))
        return _pods_behind(made, namespace, name) if address == "None" else [address]

    return addresses


def _pods_behind(made: Cluster, namespace: str, service: str) -> list[str]:
    """What a headless Service names."""
    slices = made.get(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices") or {}
    return [
        str(address)
        for each in slices.get("items") or []
        if each["metadata"]["labels"].get("kubernetes.io/service-name") == service
        for endpoint in each.get("endpoints") or []
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    ]


def start_node(made: Cluster) -> None:
    """kubelet and kube-proxy, each as itself; until the node is ready."""
    pki = made.kube.pki
    made.node.start_kubelet(pki.kubeconfig(f"system:node:{NAME}", "system:nodes"))
    made.node.start_proxy(pki.kubeconfig("system:kube-proxy"))

    def ready() -> bool:
        node = made.get(f"/api/v1/nodes/{NAME}") or {}
        conditions = node.get("status", {}).get("conditions") or []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def why() -> str:
        ended = made.node.ended()
        return f"ended: {ended}; kubelet's last words:\n{made.node.log('kubelet')[-3000:]}"

    until(f"node {NAME} is Ready", lambda: ready() and not made.node.ended(), 90, why)
