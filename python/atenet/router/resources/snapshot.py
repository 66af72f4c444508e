"""All of Envoy's resources as one value: a pure function of the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atenet.router.envoy_api import pack
from atenet.router.resources.clusters import clusters
from atenet.router.resources.listeners import listeners
from atenet.router.resources.names import Resource, type_url
from atenet.router.resources.tls import secrets
from atenet.router.settings import Settings

__all__ = ["CLUSTER", "LISTENER", "SECRET", "Snapshot", "build_snapshot", "packed"]

CLUSTER = "envoy.config.cluster.v3.Cluster"
LISTENER = "envoy.config.listener.v3.Listener"
SECRET = "envoy.extensions.transport_sockets.tls.v3.Secret"  # noqa: S105 - a message's name


@dataclass(frozen=True)
class Snapshot:
    """Resources by type URL and name, packed as they go over the wire."""

    resources: dict[str, dict[str, Any]]


def build_snapshot(settings: Settings, *, decisions_port: int) -> Snapshot:
    """Builds and checks everything. Raises AteError naming the resource that does not fit Envoy's API.

    `decisions_port`: where the decision service listens on loopback.
    """
    return packed(
        {
            CLUSTER: clusters(settings, decisions_port),
            LISTENER: listeners(settings),
            SECRET: secrets(settings),
        }
    )


def packed(found: dict[str, list[Resource]]) -> Snapshot:
    """Resources by the name of their message. Raises AteError naming the one that does not fit Envoy's API."""
    return Snapshot(
        {
            type_url(kind): {each["name"]: pack(kind, each) for each in all_of_it}
            for kind, all_of_it in found.items()
        }
    )
