"""The certificates of all sides: the product's own authorities, in a directory of the bench."""

from __future__ import annotations

from pathlib import Path

from atenet.identity import LocalIdentity, spiffe

__all__ = ["API_NAME", "ROUTER_NAME", "WORKER_ID", "BenchIdentity"]

WORKER_ID = "spiffe://cluster.local/ns/default/sa/bench"
API_NAME = "api.ate-system.svc"
ROUTER_NAME = "atenet-router.ate-system.svc"


class BenchIdentity:
    """Paths of credential bundles (key and chain in one file) and of trust bundles."""

    def __init__(self, root: Path) -> None:
        local = LocalIdentity(root / "identity")
        local.ensure()
        self.pods = local.trust("pod-identity")
        self.services = local.trust("service-dns")
        self.router = local.credential("router", spiffe.ROUTER_ID)
        self.edge = local.service_credential("edge", [ROUTER_NAME])
        self.api = local.service_credential("api", [API_NAME])
        self.worker = local.credential("worker", WORKER_ID)
