"""A Kubernetes cluster of the tests' own, as far as it is software: no node is real.

etcd and kube-apiserver, and on request controller manager and scheduler, on one loopback address
of their own. RBAC decides, the admission plugins are a default cluster's. Nothing of it is kept.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from lightkube import AsyncClient, Client, KubeConfig

from tests.support import kube_pki
from tests.support.addresses import loopback_address, unused_port
from tests.support.kube_pki import KubePki

_TOOLS = Path(__file__).resolve().parents[2] / "tools"
_START_SECONDS = 90.0
_STOP_SECONDS = 20.0
POD_CERTIFICATE_FEATURES = (
    "PodCertificateRequest",
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
)
# What a cluster is expected to do by itself for what we install; the rest would only take time.
CONTROLLERS = (
    *("deployment-controller", "replicaset-controller", "daemonset-controller"),
    *("serviceaccount-controller", "endpoints-controller", "endpointslice-controller"),
    *("namespace-controller", "garbage-collector-controller", "disruption-controller"),
    *("root-ca-certificate-publisher-controller", "node-lifecycle-controller"),
    *("taint-eviction-controller", "pod-garbage-collector-controller"),
    *("clusterrole-aggregation-controller", "podcertificaterequest-cleaner-controller"),
)


def kube_program() -> Path:
    """What `make test` built. Fails with what to do where it is missing."""
    sys.path.insert(0, str(_TOOLS))
    try:
        program: Path = importlib.import_module("kubernetes").program()
    finally:
        sys.path.remove(str(_TOOLS))
    assert program.exists(), f"{program} is missing: python3 tools/kubernetes.py"
    return program


@dataclass
class KubeCluster:
    """`features`: feature gates that differ from the version's own. `flags`: the API server's, besides.
    `address`: where it serves; without one on loopback, and then no pod could reach it."""

    directory: Path
    features: Mapping[str, bool] = field(default_factory=dict)
    flags: Sequence[str] = ()
    address: str | None = None
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)
    _clients: list[Client] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._address = self.address or loopback_address()
        # Where pods reach it, it is at the port that the policies of clusters know.
        port = 6443 if self.address else unused_port(self._address)
        self.server = f"https://{self._address}:{port}"
        self.pki = KubePki(self.directory, self.server)
        self.admin_kubeconfig = self.pki.kubeconfig(*kube_pki.ADMIN)

    def start(self) -> None:
        """Until the API server says that it is ready."""
        etcd = self._start_etcd()
        self._start_api_server(etcd)
        self._wait_ready()

    def start_controller_manager(
        self, controllers: Sequence[str] = CONTROLLERS, *, node_grace: str = "40s"
    ) -> None:
        """`node_grace`: how long a node's lease may be overdue before the node counts as lost."""
        kubeconfig = self.pki.kubeconfig(*kube_pki.CONTROLLER_MANAGER)
        self._run_kube(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(controllers)}",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self.pki.token_key}",
            f"--root-ca-file={self.pki.ca}",
            f"--node-monitor-grace-period={node_grace}",
            "--node-monitor-period=1s",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def start_scheduler(self) -> None:
        kubeconfig = self.pki.kubeconfig(*kube_pki.SCHEDULER)
        self._run_kube(
            "kube-scheduler",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def client(self, kubeconfig: Path | None = None) -> Client:
        """As the administrator, or as whoever the kubeconfig is for. Closed when the cluster stops."""
        config = KubeConfig.from_file(kubeconfig or self.admin_kubeconfig)
        self._clients.append(client := Client(config, trust_env=False))
        return client

    def async_client(self, kubeconfig: Path | None = None) -> AsyncClient:
        """The same, and the caller's to close."""
        config = KubeConfig.from_file(kubeconfig or self.admin_kubeconfig)
        return AsyncClient(config, trust_env=False)

    def http(self) -> httpx2.Client:
        """For what no client library has a method for; as the administrator."""
        trust = ssl.create_default_context(cafile=self.pki.ca)
        trust.load_cert_chain(*self.pki.certificate(kube_pki.ADMIN[0]))
        return httpx2.Client(base_url=self.server, verify=trust, trust_env=False)

    def service_account_token(self, namespace: str, name: str) -> str:
        """That this cluster issued."""
        with self.http() as http:
            answer = http.post(
                f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
                json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Of that account, by such a token."""
        token = self.service_account_token(namespace, name)
        return self.pki.token_kubeconfig(f"{namespace}-{name}", token)

    def define(self, definition: Mapping[str, Any]) -> None:
        """A CustomResourceDefinition, and until it is served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        with self.http() as http:
            answer = http.post(path, json=dict(definition))
            assert answer.status_code == 201, answer.text
            deadline = time.monotonic() + _START_SECONDS
            while not _established(http, f"{path}/{definition['metadata']['name']}"):
                assert time.monotonic() < deadline, "the resource is not served"

    def kill(self, name: str) -> None:
        """`kill -9` of one of its processes, e.g. kube-scheduler."""
        process = self._processes.pop(name)
        process.kill()
        process.wait(_STOP_SECONDS)

    def restart_api_server(self) -> None:
        """All watches end and no connection outlives it; what it stored is there again."""
        self.kill("kube-apiserver")
        self._start_api_server(self._etcd)
        self._wait_ready()

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        # Nothing of it is kept, and nobody waits for it: the API server would wait for its watches.
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(_STOP_SECONDS)
        self._processes.clear()

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def _start_etcd(self) -> str:
        program = shutil.which("etcd")
        assert program, "etcd is missing: apt-get install etcd-server"
        client = f"http://{self._address}:{unused_port(self._address)}"
        peer = f"http://{self._address}:{unused_port(self._address)}"
        self._run(
            *("etcd", program, f"--data-dir={self.directory / 'etcd'}", "--name=test"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
            *(f"--initial-cluster=test={peer}", "--logger=zap", "--log-level=error"),
        )
        self._etcd = client
        return client

    def _start_api_server(self, etcd: str) -> None:
        host = self._address
        certificate, key = self.pki.serving(host, "kubernetes.default.svc", "10.96.0.1")
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in self.features.items())
        self._run_kube(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--bind-address={host}",
            *self._advertised(),
            f"--secure-port={self.server.rpartition(':')[2]}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.pki.ca}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.pki.token_public_key}",
            f"--service-account-signing-key-file={self.pki.token_key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            *([f"--feature-gates={gates}"] if gates else []),
            *self.flags,
        )

    def _advertised(self) -> tuple[str, ...]:
        if self.address:
            return (f"--advertise-address={self.address}",)
        # Nobody follows it; the program refuses to advertise a loopback address.
        return ("--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none")

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        process = self._processes["kube-apiserver"]
        with self.http() as http:
            while not _ready(http):
                assert process.poll() is None, self.log("kube-apiserver")[-4000:]
                assert time.monotonic() < deadline, "the API server does not become ready"
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)

    def _run_kube(self, name: str, *flags: str) -> None:
        self._run(name, str(kube_program()), name, *flags)

    def _run(self, name: str, *command: str) -> None:
        """It dies with the tests."""
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", "--", *command], stdout=log, stderr=log
            )


def _ready(http: httpx2.Client) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return http.get("/readyz").status_code == 200
    return False


def _established(http: httpx2.Client, path: str) -> bool:
    conditions = (http.get(path).json().get("status") or {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


@contextlib.contextmanager
def kube_cluster(
    *, features: Mapping[str, bool] | None = None, flags: Sequence[str] = ()
) -> Iterator[KubeCluster]:
    """Ready to be asked. Its store is in memory where there is a place for it: etcd waits for disks."""
    memory = Path("/dev/shm")
    directory = Path(
        tempfile.mkdtemp(prefix="atenet-kube-", dir=memory if memory.is_dir() else None)
    )
    cluster = KubeCluster(directory, features or {}, flags)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory)


def without_pod_certificates() -> dict[str, bool]:
    """Feature gates of a cluster that knows neither certificate requests of pods nor trust bundles."""
    return dict.fromkeys(POD_CERTIFICATE_FEATURES, False)
