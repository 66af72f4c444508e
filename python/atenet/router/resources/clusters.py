"""Where Envoy connects to: the decision service, its own internal listeners, the workers, a trace collector."""

from __future__ import annotations

from atenet._engine import TUNNEL_STREAMS
from atenet.address import Address
from atenet.router.resources import names
from atenet.router.resources.hygiene import upstream_filters
from atenet.router.resources.names import Resource, type_url
from atenet.router.resources.tls import upstream_tls
from atenet.router.settings import Settings

__all__ = [
    "LARGEST_WINDOW",
    "STREAM_WINDOW",
    "breakers",
    "clusters",
    "http1_options",
    "http2_options",
    "http_options",
    "internal_cluster",
    "socket_address",
    "static_cluster",
    "worker_addresses",
]

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_DYNAMIC_FORWARD_PROXY = "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig"

# Limits on load belong to the parking lot and to each worker, not to Envoy's default of 1024 a cluster.
_UNLIMITED = 1_000_000

# Streams are bounded one by one, so the connection's window only makes slow readers stall the others.
LARGEST_WINDOW = 2**31 - 1
STREAM_WINDOW = 1 << 20


def clusters(settings: Settings, decisions_port: int) -> list[Resource]:
    """Every cluster. `decisions_port`: where the decision service really listens on loopback."""
    found = [
        _decisions(decisions_port),
        internal_cluster(names.CLUSTER_CONNECTED, names.LISTENER_CONNECTED),
        _actors(
            names.CLUSTER_TUNNEL_HTTP1,
            settings,
            {"http_protocol_options": http1_options()},
        ),
        _actors(names.CLUSTER_TUNNEL_HTTP2, settings, {"http2_protocol_options": http2_options()}),
        _workers(settings),
    ]
    if settings.otlp_collector_address:
        found.append(_traces(settings.otlp_collector_address))
    return found


def worker_addresses() -> Resource:
    """The cache of workers' addresses, shared by the tunnel's filter and its cluster."""
    return {
        "name": "workers",
        "dns_lookup_family": "ALL",
        "max_hosts": 100_000,
        "host_ttl": "300s",
        "dns_cache_circuit_breaker": {"max_pending_requests": _UNLIMITED},
    }


def _decisions(port: int) -> Resource:
    return {
        **static_cluster(
            names.CLUSTER_DECISIONS, socket_address(Address(host="127.0.0.1", port=port))
        ),
        "connect_timeout": "1s",
        **http_options({"http2_protocol_options": http2_options()}),
    }


def _traces(address: Address) -> Resource:
    return {
        **static_cluster(names.CLUSTER_TRACES, socket_address(address)),
        "type": "STRICT_DNS",
        "connect_timeout": "1s",
    }


def _actors(name: str, settings: Settings, protocol: Resource) -> Resource:
    """Connections to actors: each goes through the tunnel's listener to the worker and on to the actor."""
    options = http_options(
        protocol, idle_seconds=settings.actor_idle_timeout, filters=upstream_filters()
    )
    return {**internal_cluster(name, names.LISTENER_TUNNEL), **options}


def internal_cluster(name: str, listener: str) -> Resource:
    """A cluster whose only endpoint is one of Envoy's own listeners; state marked as shared goes along."""
    endpoint = {"envoy_internal_address": {"server_listener_name": listener, "endpoint_id": name}}
    internal = "envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport"
    raw_buffer = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"
    return {
        **static_cluster(name, endpoint),
        "connect_timeout": "5s",
        "transport_socket": {
            "name": "envoy.transport_sockets.internal_upstream",
            "typed_config": {
                "@type": type_url(internal),
                "transport_socket": {
                    "name": "envoy.transport_sockets.raw_buffer",
                    "typed_config": {"@type": type_url(raw_buffer)},
                },
            },
        },
    }


def _workers(settings: Settings) -> Resource:
    keepalive = {
        # A worker that is gone without a word is noticed by its silence, on new tunnels too.
        "connection_keepalive": {
            "interval": f"{settings.worker_silence_timeout}s",
            "timeout": f"{settings.worker_silence_timeout}s",
            "connection_idle_interval": "1s",
        },
        # Only the worker's own limit opens a second connection. Envoy does not wait for a worker to say it; one with
        # a lower limit refuses what is too much at first.
        "max_concurrent_streams": TUNNEL_STREAMS,
    }
    return {
        "name": names.CLUSTER_WORKERS,
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": f"{settings.worker_connect_timeout}s",
        "cluster_type": {
            "name": "envoy.clusters.dynamic_forward_proxy",
            "typed_config": {
                "@type": type_url(_DYNAMIC_FORWARD_PROXY),
                "dns_cache_config": worker_addresses(),
                # The pinned SPIFFE ID replaces the check of a host name.
                "allow_insecure_cluster_options": True,
            },
        },
        "circuit_breakers": breakers(),
        "transport_socket": upstream_tls(settings),
        **http_options({"http2_protocol_options": {**http2_options(), **keepalive}}),
    }


def http1_options() -> Resource:
    return {"enable_trailers": True, "allow_custom_methods": True}


def http2_options() -> Resource:
    return {
        "initial_stream_window_size": STREAM_WINDOW,
        "initial_connection_window_size": LARGEST_WINDOW,
    }


def static_cluster(name: str, endpoint_address: Resource) -> Resource:
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": endpoint_address}}]}]
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
        "circuit_breakers": breakers(),
    }


def socket_address(address: Address) -> Resource:
    return {"socket_address": {"address": address.host, "port_value": address.port}}


def breakers() -> Resource:
    limit = {
        "max_connections": _UNLIMITED,
        "max_pending_requests": _UNLIMITED,
        "max_requests": _UNLIMITED,
    }
    return {"thresholds": [limit]}


def http_options(
    protocol: Resource,
    *,
    negotiated: bool = False,
    idle_seconds: float | None = None,
    filters: list[Resource] | None = None,
) -> Resource:
    """`negotiated`: of the protocols in `protocol`, the one that the TLS handshake ends with."""
    how = "auto_config" if negotiated else "explicit_http_config"
    options: Resource = {"@type": type_url(_HTTP_OPTIONS), how: protocol}
    if idle_seconds is not None:
        options["common_http_protocol_options"] = {"idle_timeout": f"{idle_seconds}s"}
    if filters:
        options["http_filters"] = filters
    return {"typed_extension_protocol_options": {_HTTP_OPTIONS: options}}
