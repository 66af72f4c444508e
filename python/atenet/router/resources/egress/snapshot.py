"""All of the gateway's resources as one value: a pure function of the settings."""

from __future__ import annotations

from atenet.router.egress_settings import EgressSettings
from atenet.router.resources.egress.clusters import egress_clusters
from atenet.router.resources.egress.listeners import egress_listeners
from atenet.router.resources.egress.tls import egress_secrets
from atenet.router.resources.snapshot import CLUSTER, LISTENER, SECRET, Snapshot, packed

__all__ = ["build_egress_snapshot"]


def build_egress_snapshot(settings: EgressSettings, *, decisions_port: int) -> Snapshot:
    """Builds and checks everything. Raises AteError naming the resource that does not fit Envoy's API."""
    return packed(
        {
            CLUSTER: egress_clusters(settings, decisions_port),
            LISTENER: egress_listeners(settings),
            SECRET: egress_secrets(settings),
        }
    )
