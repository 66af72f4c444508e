"""Pods of the check's own: the first that runs at all, and clients that act as themselves."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real_node.cluster import Cluster, Object, until
from tests.real_node.images import REGISTRY, TAG

_CLIENT = Path(__file__).with_name("client.py")
_START_SECONDS = 120.0


def is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def troubles(cluster: Cluster, namespace: str) -> str:
    """What stands in the way of pods that are not ready, as kubelet and their containers tell it."""
    lines = []
    for pod in cluster.pods(namespace):
        if is_ready(pod):
            continue
        name, status = pod["metadata"]["name"], pod.get("status", {})
        lines.append(f"{name}: {status.get('phase')} {status.get('message', '')}")
        for each in [
            *status.get("initContainerStatuses", []),
            *status.get("containerStatuses", []),
        ]:
            state = {**each.get("lastState", {}), **each["state"]}
            lines.append(f"  {each['name']}: {json.dumps(state)}")
            lines.append(cluster.pod_log(namespace, name, each["name"]))
    lines += [
        f"  event {each['involvedObject']['name']}: {each['reason']} {each['message']}"
        for each in cluster.items(f"/api/v1/namespaces/{namespace}/events")
        if each["type"] == "Warning"
    ]
    return "\n".join(lines)[-8000:]


def first(cluster: Cluster) -> str:
    """A pod that needs nothing of ours: it says its address, and the API server reads that from kubelet."""
    script = "hostname -I; exec sleep infinity"
    spec = {
        "containers": [
            {
                "name": "hello",
                "image": f"{REGISTRY}/base:{TAG}",
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", script],
            }
        ],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
    }
    until(
        "the account of pods",
        lambda: cluster.get("/api/v1/namespaces/default/serviceaccounts/default"),
        30,
        lambda: "no controller makes it",
    )
    _make(cluster, "default", "hello", spec)
    path = "/api/v1/namespaces/default/pods/hello"
    said = until(
        "its log can be read",
        lambda: cluster.pod_log("default", "hello", "hello").strip(),
        20,
        lambda: "kubelet gives none",
    )
    address = (cluster.get(path) or {})["status"]["podIP"]
    assert said == address, f"the pod says {said}, its status {address}"
    with cluster.kube.http() as http:
        http.delete(path)
    until("the pod is gone", lambda: cluster.get(path) is None, 60, lambda: "kubelet keeps it")
    return f"at {address}, its log read, deleted"


@dataclass(frozen=True)
class Client:
    """A pod with a certificate of its own, signed for it because it mounts the volume."""

    cluster: Cluster
    namespace: str
    account: str

    @property
    def spiffe_id(self) -> str:
        return f"spiffe://cluster.local/ns/{self.namespace}/sa/{self.account}"

    def start(self) -> None:
        namespaces = "/api/v1/namespaces"
        labels = {"ate.dev/trust": "true"}
        self.cluster.apply(namespaces, {"metadata": {"name": self.namespace, "labels": labels}})
        account = {"metadata": {"name": self.account}}
        self.cluster.apply(f"{namespaces}/{self.namespace}/serviceaccounts", account)
        _make(self.cluster, self.namespace, self.account, _client_spec(self.account))

    def call(self, method: str, request: Object) -> Object:
        """Of ateapi.Control. From the node itself: no policy lets a client's pod reach `api` (`kubectl
        port-forward` comes from there too)."""
        return self._run("api", method, json.dumps(request), network=False)

    def http(self, method: str, url: str, **headers: str) -> Object:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return self._run("http", method, url, json.dumps(named), network=True)

    def connects(self, host: str, port: int) -> bool:
        return bool(self._run("connect", host, str(port), network=True)["connected"])

    def _run(self, *words: str, network: bool) -> Object:
        into = ["nsenter", "--mount", *(["--net"] if network else []), "-t", self._pid()]
        done = subprocess.run(
            [*into, "/opt/atenet/bin/python", "-", *words],
            input=_CLIENT.read_text(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: Object = json.loads(done.stdout)
        return answer

    def _pid(self) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{self.account}"
        status: Any = (self.cluster.get(path) or {})["status"]
        wanted = status["containerStatuses"][0]["containerID"].rpartition("/")[2]
        for line in self.cluster.node.ctr("tasks", "ls").splitlines():
            if line.startswith(wanted):
                return line.split()[1]
        raise AssertionError(f"{self.namespace}/{self.account} has no process")


def _make(cluster: Cluster, namespace: str, name: str, spec: Object) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.apply(pods, {"metadata": {"name": name}, "spec": spec})
    until(
        f"pod {namespace}/{name} is ready",
        lambda: is_ready(cluster.get(f"{pods}/{name}") or {}),
        _START_SECONDS,
        lambda: troubles(cluster, namespace),
    )


def _client_spec(account: str) -> Object:
    certificate = {
        "signerName": "ate.dev/pod-identity",
        "keyType": "ECDSAP256",
        "credentialBundlePath": "credential-bundle.pem",
    }
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "client",
                "image": f"{REGISTRY}/base:{TAG}",
                "imagePullPolicy": "Never",
                "command": ["sleep", "infinity"],
                "volumeMounts": [
                    {"name": "identity", "mountPath": "/run/ate/identity"},
                    {"name": "trust", "mountPath": "/run/ate/trust"},
                ],
            }
        ],
        "volumes": [
            {
                "name": "identity",
                "projected": {"sources": [{"podCertificate": certificate}], "defaultMode": 0o400},
            },
            {"name": "trust", "configMap": {"name": "ate-trust"}},
        ],
    }
