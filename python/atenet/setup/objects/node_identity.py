"""Where the cluster has no pod certificates: the container that asks for an agent's, by its own token. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.config_parts import Resources
from atenet.setup.objects import volumes
from atenet.setup.objects.containers import container, flags, mount
from atenet.setup.objects.names import IDENTITY, Object

__all__ = ["TOKEN_DIRECTORY", "node_identity", "node_identity_volumes", "token_volume"]

TOKEN_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a directory
_TOKEN_SECONDS = 3600


def token_volume() -> Object:
    """What automounting would give, for one container instead of all."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}}
    roots = {
        "configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    }
    namespace = {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
        }
    }
    return {"name": "token", "projected": {"sources": [token, roots, namespace]}}


def node_identity_volumes() -> list[Object]:
    """The key is made in the pod and never leaves its memory."""
    return [volumes.scratch("identity", memory=True, size="1Mi"), token_volume()]


def node_identity(config: Config) -> Object:
    """Root as the agent is, which reads the file; without any capability."""
    security = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": 0,
        "runAsGroup": 0,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return container(
        config,
        "identity",
        image_name="ate-controller",
        command=["ate-controller", "node-identity"],
        args=flags({"--directory": IDENTITY, "--log-level": config.log_level}),
        resources=Resources(requests={"cpu": "10m", "memory": "96Mi"}, limits={"memory": "256Mi"}),
        security=security,
        mounts=[
            mount("identity", IDENTITY, writable=True),
            mount("token", TOKEN_DIRECTORY),
            mount("tmp", "/tmp", writable=True),  # noqa: S108
        ],
    )
