"""Namespaces, with what pod security they hold their pods to. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.objects.names import (
    MANAGED,
    NAMESPACE,
    TRUSTED_NAMESPACE,
    WORKER_NAMESPACE,
    Object,
)

__all__ = ["namespaces"]

_LEVEL = "pod-security.kubernetes.io"


def namespaces(config: Config) -> list[Object]:
    """The components' own, and those of the worker pools."""
    # atelet mounts directories of its node, which no level but `privileged` allows. All others are written for
    # `restricted`, and the cluster warns of each pod that is not.
    made = [_namespace(NAMESPACE, {})]
    made += [
        _namespace(name, {**WORKER_NAMESPACE, **TRUSTED_NAMESPACE})
        for name in config.worker_namespaces
    ]
    return made


def _namespace(name: str, labels: dict[str, str]) -> Object:
    security = {
        f"{_LEVEL}/enforce": "privileged",
        f"{_LEVEL}/audit": "restricted",
        # Of workers and agents it would warn each time.
        f"{_LEVEL}/warn": "privileged",
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**MANAGED, **labels, **security}},
    }
