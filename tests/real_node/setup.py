"""`ate-setup` against the node's cluster, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from tests.real_node.cluster import Cluster, Object, until
from tests.real_node.images import REGISTRY, TAG
from tests.real_node.pods import Client, is_ready, troubles

# One small node has to hold all of it twice.
_SMALL = {"requests": {"cpu": "10m", "memory": "32Mi"}}
_PARTS = (
    *("ateapi", "ateController", "atelet", "router", "envoy", "agentgateway", "egress", "sdsmint"),
)
# Labels of the pools' workers: those of the gvisor class run actors of the other one, too.
OF_FILES, OF_MEMORY = {"keeps": "files"}, {"keeps": "memory"}
_WORKERS = {
    "replicas": 2,
    "resources": {
        "requests": {"cpu": "20m", "memory": "128Mi"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    },
}
_REMEMBERING = {**_WORKERS, "sandboxClass": "gvisor", "slots": 2}
_SECONDS = 300


def prepare(cluster: Cluster, state: Path, owner: Client, friend: Client, *, gvisor: bool) -> None:
    """The Secret with the bucket's keys, the database's URL, and a values file. `gvisor`: with workers of that
    class."""
    keys = {
        name: cluster.s3.variables[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    }
    cluster.apply("/api/v1/namespaces", {"metadata": {"name": "ate-system"}})
    secret = {"metadata": {"name": "bucket"}, "stringData": keys}
    cluster.apply("/api/v1/namespaces/ate-system/secrets", secret)
    (state / "url").write_text(f"{cluster.database}\n")
    values = {
        "imageRegistry": REGISTRY,
        "imageTag": TAG,
        "imagePullPolicy": "Never",
        "snapshots": cluster.bucket,
        "snapshotsSecret": "bucket",
        "snapshotsRegion": "us-east-1",
        "snapshotsEndpoint": cluster.s3.endpoint,
        "ingressAllowedSpiffeIds": [friend.spiffe_id],
        "role": [f"{owner.spiffe_id}=owner"],
        "resources": dict.fromkeys(_PARTS, _SMALL),
        "pools": [
            {"name": "general", "labels": OF_FILES, **_WORKERS},
            *([{"name": "memory", "labels": OF_MEMORY, **_REMEMBERING}] if gvisor else []),
        ],
    }
    (state / "values.yaml").write_text(yaml.safe_dump(values))


def ate_setup(cluster: Cluster, state: Path, command: str, *words: str) -> str:
    """Its last line. Fails with all that it said, and what kubelet says of pods that are not ready."""
    given = [f"--kubeconfig={cluster.kube.admin_kubeconfig}", *words]
    if command in ("install", "upgrade"):
        given += [f"--timeout={_SECONDS}s"]
    if command == "install":
        given += [f"--values={state / 'values.yaml'}", f"--database-url-file={state / 'url'}"]
    program = Path(sys.executable).with_name("ate-setup")
    done = subprocess.run([program, command, *given], capture_output=True, text=True, check=False)
    if done.returncode:
        spaces = [troubles(cluster, each) for each in ("ate-system", "ate-workers")]
        raise RuntimeError("\n".join([done.stdout, done.stderr, *spaces]))
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def running(cluster: Cluster) -> str:
    """How many pods of each part are ready: ate-setup waits for its Deployments, not for pools' workers."""
    pods = until("all pods run", lambda: _ready(cluster), 60, lambda: str(_late(_pods(cluster))))
    restarts = [
        f"{pod['metadata']['name']}/{each['name']}: {json.dumps(each['lastState'])}"
        for pod in pods
        for each in pod["status"].get("containerStatuses", [])
        if each["restartCount"]
    ]
    return f"{len(pods)} pods ready; restarts: {', '.join(restarts) or 'none'}"


def _ready(cluster: Cluster) -> list[Object]:
    """All of them, or none."""
    pods = _pods(cluster)
    return [] if _late(pods) else pods


def _late(pods: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in pods if not is_ready(each)]


def _pods(cluster: Cluster) -> list[Object]:
    made = [*cluster.pods("ate-system"), *cluster.pods("ate-workers")]
    # Those that were replaced drain for a while yet.
    return [each for each in made if "deletionTimestamp" not in each["metadata"]]
