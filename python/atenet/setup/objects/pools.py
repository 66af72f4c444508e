"""Worker pools: their definition, and those that the configuration names. Pure."""

from __future__ import annotations

from atenet.controller.definition import crd
from atenet.setup.config import Config
from atenet.setup.config_parts import Pool
from atenet.setup.objects.names import MANAGED, Object, metadata

__all__ = ["definition", "pools"]


def definition() -> Object:
    """The CustomResourceDefinition, from the controller's own model."""
    made = crd()
    made["metadata"].setdefault("labels", {}).update(MANAGED)
    return made


def pools(config: Config) -> list[Object]:
    """A WorkerPool each, and the ServiceAccounts that are their workers' identities."""
    accounts = {(pool.namespace, pool.account): None for pool in config.pools}
    return [
        *(_account(namespace, name) for namespace, name in accounts),
        *(_pool(pool) for pool in config.pools),
    ]


def _account(namespace: str, name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name, namespace=namespace),
        "automountServiceAccountToken": False,
    }


def _pool(pool: Pool) -> Object:
    return {
        "apiVersion": "ate.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": metadata(pool.name, namespace=pool.namespace),
        "spec": pool.spec(),
    }
