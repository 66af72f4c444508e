"""What Envoy carries, from its own counters. Pure."""

from typing import Any

from atenet.router.traffic import egress_traffic, ingress_traffic


def admin(**stats: int) -> Any:
    """Answers with these, dots spelled as two underscores."""

    class Counters:
        def stats(self, _pattern: str) -> dict[str, int]:
            return {name.replace("__", "."): value for name, value in stats.items()}

    return Counters()


def test_a_drain_of_ingress_waits_for_requests_and_not_for_idle_tunnels() -> None:
    traffic = ingress_traffic(
        admin(
            http__ingress__downstream_rq_active=2,
            http__connected__downstream_rq_active=1,
            http__connect__downstream_rq_active=7,
            http__connect__downstream_cx_active=7,
            cluster__workers__upstream_cx_total=9,
        )
    )
    assert traffic.requests == 3
    assert traffic.metrics["atenet_router_client_connections"] == 7
    assert traffic.metrics["atenet_router_worker_connections_opened_total"] == 9


def test_a_drain_of_egress_waits_for_requests_and_for_what_passes_through() -> None:
    traffic = egress_traffic(
        admin(
            http__http__downstream_rq_active=1,
            http__tls__downstream_rq_active=2,
            tcp__passthrough__downstream_cx_active=4,
            http__tunnel__downstream_cx_active=9,
        )
    )
    assert traffic.requests == 7
    assert traffic.metrics == {"atenet_router_client_connections": 9}
