"""What empties the nodes' directories at the very end, on each node, mounting nothing else of it. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.config_parts import Resources
from atenet.setup.objects import volumes
from atenet.setup.objects.atelet import NODE_RUN, NODE_STATE
from atenet.setup.objects.containers import container, flags, mount, on_node
from atenet.setup.objects.names import MANAGED, NAMESPACE, Object

__all__ = ["PURGE", "purge", "purge_flags"]

PURGE = "ate-purge"
_LABELS = {"app.kubernetes.io/name": PURGE, "app.kubernetes.io/part-of": "atenet"}
_DONE = "/tmp/purged"  # noqa: S108 - in the pod
# Actors' files belong to accounts of their own, in directories that nobody else may enter.
_CAPABILITIES = ("DAC_OVERRIDE", "FOWNER")


def purge_flags(config: Config) -> list[str]:
    """Of `atenet purge-node`."""
    return flags(
        {
            "--directory": [NODE_STATE, NODE_RUN],
            "--ready-file": _DONE,
            "--log-level": config.log_level,
        }
    )


def purge(config: Config) -> Object:
    """The DaemonSet. On every node, whichever had workers: pools may have been elsewhere before."""
    labels = {**MANAGED, **_LABELS}
    spec: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(config)],
        "volumes": [
            _on_node("state", NODE_STATE),
            _on_node("node-run", NODE_RUN),
            volumes.scratch("tmp"),
        ],
    }
    if config.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in config.image_pull_secrets]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": PURGE, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "100%"},
            },
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _container(config: Config) -> Object:
    return container(
        config,
        "purge",
        image_name="atelet",
        command=["atenet", "purge-node"],
        args=purge_flags(config),
        resources=Resources(requests={"cpu": "50m", "memory": "64Mi"}, limits={"memory": "256Mi"}),
        security=on_node(_CAPABILITIES),
        mounts=[
            mount("state", NODE_STATE, writable=True),
            mount("node-run", NODE_RUN, writable=True),
            mount("tmp", "/tmp", writable=True),  # noqa: S108
        ],
        readinessProbe={
            "exec": {"command": ["test", "-e", _DONE]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
            "successThreshold": 1,
        },
    )


def _on_node(name: str, path: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
