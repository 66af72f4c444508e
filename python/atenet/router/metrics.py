"""The engine's metrics with the counts that only Envoy knows put in. Pure."""

from __future__ import annotations

import re

from atenet.router.admin import Traffic

__all__ = ["CONTENT_TYPE", "merge"]

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def merge(engine: str, traffic: Traffic | None) -> str:
    """The engine's text, in which Envoy's numbers replace those of connections it does not carry itself."""
    if traffic is None:
        return engine
    values = {
        "atenet_router_client_connections": traffic.client_connections,
        "atenet_router_worker_connections": traffic.worker_connections,
        "atenet_router_worker_connections_opened_total": traffic.worker_connections_opened,
        "atenet_router_tunnels": traffic.tunnels,
        "atenet_router_tunnels_opened_total": traffic.tunnels_opened,
    }
    for name, value in values.items():
        engine = re.sub(rf"^{name} .*$", f"{name} {value}", engine, flags=re.MULTILINE)
    return engine
