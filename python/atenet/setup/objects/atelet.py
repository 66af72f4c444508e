"""The node agent: one pod on each node, with the node's directory of actors' files. Pure."""

from __future__ import annotations

from atenet.identity import spiffe
from atenet.setup.config import Config
from atenet.setup.objects import volumes
from atenet.setup.objects.containers import container, flags, mount, on_node, tcp_probe
from atenet.setup.objects.names import IDENTITY, TRUST, Component, Object, Port, metadata, selector
from atenet.setup.objects.node_identity import node_identity, node_identity_volumes
from atenet.setup.objects.object_store import object_store_env
from atenet.setup.objects.workloads import grace, pod_template, service_account

__all__ = ["NODE_RUN", "NODE_STATE", "atelet", "atelet_flags"]

# On the node; Worker Pods mount the same, at the same paths.
NODE_STATE, NODE_RUN = "/var/lib/ate", "/run/ate/node"
# Files of actors belong to accounts of their own: it makes, gives away and reads them all. And it ends
# the processes of an actor whose worker hangs, which it sees only among the node's.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL")
_STOP_SECONDS = 15


def atelet_flags(config: Config) -> list[str]:
    """Of `atelet`. `$(...)` are the container's variables, which kubelet puts in."""
    return flags(
        {
            "--node": "$(NODE_NAME)",
            "--listen": f"0.0.0.0:{Port.ATELET}",
            "--advertise": f"$(POD_IP):{Port.ATELET}",
            "--credential": volumes.IDENTITY_FILE,
            "--trust": volumes.trust_file("pod-identity"),
            "--api": f"{spiffe.API_SERVER_NAME}:443",
            "--api-roots": volumes.trust_file("service-dns"),
            "--state-dir": NODE_STATE,
            "--snapshots": config.snapshots,
            "--socket": f"{NODE_RUN}/atelet.sock",
            "--egress-gateway-address": f"{spiffe.EGRESS_SERVER_NAME}:443",
            "--log-level": config.log_level,
        }
    )


def atelet(config: Config, *, pod_certificates: bool) -> list[Object]:
    """DaemonSet and ServiceAccount."""
    component = Component.ATELET
    template = pod_template(
        config,
        component,
        containers=[_agent(config), *([] if pod_certificates else [node_identity(config)])],
        volumes=[
            *_identity(pod_certificates),
            volumes.trust(),
            _on_node("state", NODE_STATE),
            _on_node("node-run", NODE_RUN),
            volumes.scratch("tmp", size="1Gi"),
        ],
        grace_seconds=grace(_STOP_SECONDS),
        scheduling=config.node_scheduling,
        security={"seccompProfile": {"type": "RuntimeDefault"}},
    )
    template["spec"]["hostPID"] = True
    made = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(component.value, component),
        "spec": {
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": selector(component)},
            # Actors run on without their node's agent; they only start and stop with it.
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": template,
        },
    }
    return [service_account(component), made]


def _identity(pod_certificates: bool) -> list[Object]:
    if not pod_certificates:
        return node_identity_volumes()
    return [volumes.identity(Component.ATELET.account, pod_certificates=True)]


def _on_node(name: str, path: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def _agent(config: Config) -> Object:
    return container(
        config,
        "atelet",
        image_name="atelet",
        command=["atelet"],
        args=atelet_flags(config),
        resources=config.resources.atelet,
        security=on_node(CAPABILITIES),
        env=[
            _field("NODE_NAME", "spec.nodeName"),
            _field("POD_IP", "status.podIP"),
            *object_store_env(config),
        ],
        mounts=[
            mount("identity", IDENTITY),
            mount("trust", TRUST),
            mount("state", NODE_STATE, writable=True),
            mount("node-run", NODE_RUN, writable=True),
            mount("tmp", "/tmp", writable=True),  # noqa: S108
        ],
        ports={"grpc": Port.ATELET},
        startupProbe=tcp_probe(Port.ATELET, period=1, failures=60),
        readinessProbe=tcp_probe(Port.ATELET),
        livenessProbe=tcp_probe(Port.ATELET, period=10, failures=6),
    )


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
