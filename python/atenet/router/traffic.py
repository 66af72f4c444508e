"""What Envoy carries now and has carried, in the words of our metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from atenet.router.admin import EnvoyAdmin

__all__ = ["Measure", "Traffic", "egress_traffic", "ingress_traffic"]


@dataclass(frozen=True)
class Traffic:
    """`requests`: what a drain waits for; `metrics`: values by the name of the engine's metric."""

    requests: int
    metrics: Mapping[str, int]


# Raises AteError when Envoy does not answer.
Measure = Callable[[EnvoyAdmin], Traffic]

_INGRESS = (
    r"^(http\.(ingress|connect|connected)\.downstream|cluster\.workers\.upstream)"
    r"_(rq|cx)_(active|total)$"
)
_EGRESS = r"^(http\.(http|tls|tunnel)|tcp\.passthrough)\.downstream_(rq|cx)_active$"


def ingress_traffic(admin: EnvoyAdmin) -> Traffic:
    stats = admin.stats(_INGRESS)

    def of(*names: str) -> int:
        return sum(stats.get(name, 0) for name in names)

    return Traffic(
        # Requests to actors; the CONNECTs around some of them may stay open, idle, for ever.
        requests=of("http.ingress.downstream_rq_active", "http.connected.downstream_rq_active"),
        metrics={
            "atenet_router_client_connections": of(
                "http.ingress.downstream_cx_active", "http.connect.downstream_cx_active"
            ),
            "atenet_router_worker_connections": of("cluster.workers.upstream_cx_active"),
            "atenet_router_worker_connections_opened_total": of(
                "cluster.workers.upstream_cx_total"
            ),
            "atenet_router_tunnels": of("cluster.workers.upstream_rq_active"),
            "atenet_router_tunnels_opened_total": of("cluster.workers.upstream_rq_total"),
        },
    )


def egress_traffic(admin: EnvoyAdmin) -> Traffic:
    stats = admin.stats(_EGRESS)
    # What passes through has no requests to wait for, only connections; tunnels around requests may idle for ever.
    waited_for = (
        "http.http.downstream_rq_active",
        "http.tls.downstream_rq_active",
        "tcp.passthrough.downstream_cx_active",
    )
    tunnels = stats.get("http.tunnel.downstream_cx_active", 0)
    return Traffic(
        requests=sum(stats.get(name, 0) for name in waited_for),
        metrics={"atenet_router_client_connections": tunnels},
    )
