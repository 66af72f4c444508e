"""The HTTP connection managers: what is accepted, how long it may take, what is logged and what is refused."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.access_log import access_log
from atenet.router.resources.clusters import LARGEST_WINDOW, STREAM_WINDOW
from atenet.router.resources.filters import carry_assignment, carry_connect, decide, router
from atenet.router.resources.hygiene import early_header_mutation, ignored_upgrades, strip_internal
from atenet.router.resources.local_replies import local_replies
from atenet.router.resources.names import Resource, type_url
from atenet.router.resources.tracing import tracing
from atenet.router.settings import Settings

__all__ = ["connect_manager", "request_manager"]

_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


def request_manager(chain: str, settings: Settings) -> Resource:
    """Serves requests to actors: those of the plain listener and those inside a CONNECT."""
    upgrades = [{"upgrade_type": "websocket"}]
    filters = [strip_internal(), decide(settings), carry_assignment(), router()]
    return _manager(chain, settings, upgrades, filters, [_grpc_route(), _route()])


def connect_manager(settings: Settings) -> Resource:
    """Serves CONNECT: the decision service checks what it names, the requests inside are looked up one by one."""
    filters = [decide(settings), carry_connect(), router()]
    return _manager(names.CHAIN_CONNECT, settings, [], filters, [_connect_route()])


def _manager(
    chain: str,
    settings: Settings,
    upgrades: list[Resource],
    filters: list[Resource],
    routes: list[Resource],
) -> Resource:
    manager: Resource = {
        "@type": type_url(_MANAGER),
        "stat_prefix": chain,
        "http_filters": filters,
        "route_config": _routes(chain, routes),
        # CONNECT is accepted everywhere so that it gets an answer of the table rather than Envoy's own.
        "upgrade_configs": [*upgrades, {"upgrade_type": "CONNECT"}],
        "early_header_mutation_extensions": early_header_mutation(),
        "local_reply_config": local_replies(),
        "access_log": [access_log(chain)],
        "stream_idle_timeout": f"{settings.stream_idle_timeout}s",
        "request_headers_timeout": f"{settings.header_timeout}s",
        "common_http_protocol_options": {
            "idle_timeout": f"{settings.client_idle_timeout}s",
            "max_connection_duration": names.CONNECTION_LIFETIME,
        },
        "http1_safe_max_connection_duration": True,
        "http_protocol_options": {
            "enable_trailers": True,
            "accept_http_10": True,
            "allow_custom_methods": True,
            "ignore_http_11_upgrade": ignored_upgrades(),
        },
        "http2_protocol_options": {
            "allow_connect": True,
            # A malformed request costs its own stream, not the connection's others.
            "override_stream_error_on_invalid_http_message": True,
            "initial_stream_window_size": STREAM_WINDOW,
            "initial_connection_window_size": LARGEST_WINDOW,
        },
        # Requests and answers pass as they were sent: no ids, no names, no client addresses are added.
        "generate_request_id": False,
        "preserve_external_request_id": True,
        "server_header_transformation": "PASS_THROUGH",
        "use_remote_address": chain != names.CHAIN_CONNECTED,
        "skip_xff_append": True,
        # All interim answers are the actor's own, 103 included; Envoy knows no finer choice.
        "proxy_100_continue": True,
    }
    if settings.otlp_collector_address and chain != names.CHAIN_CONNECT:
        manager |= tracing(settings.otlp_collector_address)
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}


def _routes(chain: str, routes: list[Resource]) -> Resource:
    host = {
        "name": chain,
        "domains": ["*"],
        "routes": routes,
        # The second is what Envoy adds for clients outside of its own network.
        "request_headers_to_remove": [names.TARGET_HEADER, "x-envoy-external-address"],
    }
    return {"name": chain, "virtual_hosts": [host]}


def _grpc_route() -> Resource:
    return {"match": {"prefix": "/", "grpc": {}}, "route": _to(names.CLUSTER_TUNNEL_HTTP2)}


def _route() -> Resource:
    return {"match": {"prefix": "/"}, "route": _to(names.CLUSTER_TUNNEL_HTTP1)}


def _connect_route() -> Resource:
    connect = {"upgrade_type": "CONNECT", "connect_config": {}}
    return {
        "match": {"connect_matcher": {}},
        "route": {**_to(names.CLUSTER_CONNECTED), "upgrade_configs": [connect]},
    }


def _to(cluster: str) -> Resource:
    # No total deadline: only silence ends a stream.
    return {"cluster": cluster, "timeout": "0s"}
