"""Where Envoy connects to as a gateway: its own services on this machine, its own listeners, and origins."""

from __future__ import annotations

from atenet.address import Address
from atenet.router.egress_settings import EgressSettings
from atenet.router.resources import clusters as shared
from atenet.router.resources import names as shared_names
from atenet.router.resources.egress import names
from atenet.router.resources.egress.origins import addresses
from atenet.router.resources.egress.tls import origin_tls
from atenet.router.resources.hygiene import upstream_filters
from atenet.router.resources.names import Resource, type_url

__all__ = ["egress_clusters"]

_DYNAMIC_FORWARD_PROXY = "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig"


def egress_clusters(settings: EgressSettings, decisions_port: int) -> list[Resource]:
    """Every cluster. `decisions_port`: where the decision service really listens on loopback."""
    decisions = shared.socket_address(Address(host="127.0.0.1", port=decisions_port))
    if settings.extproc_socket:
        decisions = {"pipe": {"path": str(settings.extproc_socket)}}
    http1: Resource = {"http_protocol_options": shared.http1_options()}
    http2: Resource = {"http2_protocol_options": shared.http2_options()}
    found = [
        _service(shared_names.CLUSTER_DECISIONS, decisions),
        shared.internal_cluster(names.CLUSTER_FIRST, names.LISTENER_FIRST),
        shared.internal_cluster(names.CLUSTER_DECIDE, names.LISTENER_DECIDE),
        shared.internal_cluster(names.CLUSTER_INSIDE, names.LISTENER_INSIDE),
        _origins(names.CLUSTER_ORIGINS, settings, http1),
        _origins(names.CLUSTER_ORIGINS_GRPC, settings, http2),
        _origins(names.CLUSTER_SECURE_ORIGINS, settings, http1 | http2, ["h2", "http/1.1"]),
        _origins(names.CLUSTER_SECURE_ORIGINS_GRPC, settings, http2, ["h2"]),
        _origins(names.CLUSTER_ORIGINS_TCP, settings),
    ]
    found.append({"name": names.CLUSTER_NOWHERE, "type": "STATIC", "connect_timeout": "1s"})
    if settings.sdsmint_socket:
        pipe = {"pipe": {"path": str(settings.sdsmint_socket)}}
        found.append(_service(names.CLUSTER_MINT, pipe))
    if settings.experimental_additional_egress_extproc_service:
        address = settings.experimental_additional_egress_extproc_service
        found.append(
            {
                **_service(names.CLUSTER_ADDITIONAL, shared.socket_address(address)),
                "type": "STRICT_DNS",
            }
        )
    return found


def _service(name: str, address: Resource) -> Resource:
    """A gRPC service. Each tunnel, and each leaf, holds one stream for as long as it lives."""
    options: Resource = {"http2_protocol_options": shared.http2_options()}
    return {
        **shared.static_cluster(name, address),
        "connect_timeout": "1s",
        **shared.http_options(options),
    }


def _origins(
    name: str,
    settings: EgressSettings,
    protocol: Resource | None = None,
    alpn: list[str] | None = None,
) -> Resource:
    """Connections to addresses that the decision service has checked; TLS where `alpn` is given."""
    cluster: Resource = {
        "name": name,
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": f"{settings.egress_connect_timeout}s",
        "cluster_type": {
            "name": "envoy.clusters.dynamic_forward_proxy",
            "typed_config": {
                "@type": type_url(_DYNAMIC_FORWARD_PROXY),
                "dns_cache_config": addresses(),
                # Each request brings the name that the certificate must carry.
                "allow_insecure_cluster_options": True,
            },
        },
        "circuit_breakers": shared.breakers(),
    }
    if protocol:
        cluster |= shared.http_options(
            protocol,
            negotiated=len(protocol) > 1,
            idle_seconds=settings.origin_idle_timeout,
            filters=upstream_filters(),
        )
    if alpn:
        cluster["transport_socket"] = origin_tls(alpn)
    return cluster
