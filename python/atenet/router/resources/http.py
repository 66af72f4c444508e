"""The ingress's HTTP connection managers: which filters a request meets, and which way it goes."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.access_log import access_log
from atenet.router.resources.filters import carry_assignment, carry_connect, decide, router
from atenet.router.resources.hygiene import strip_internal
from atenet.router.resources.local_replies import local_replies
from atenet.router.resources.manager import manager
from atenet.router.resources.names import Resource
from atenet.router.resources.tracing import tracing
from atenet.router.settings import Settings

__all__ = ["connect_manager", "request_manager"]


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
    own: Resource = {
        "http_filters": filters,
        "route_config": _routes(chain, routes),
        # CONNECT is accepted everywhere so that it gets an answer of the table rather than Envoy's own.
        "upgrade_configs": [*upgrades, {"upgrade_type": "CONNECT"}],
        "local_reply_config": local_replies(),
        "access_log": [access_log(chain)],
        "use_remote_address": chain != names.CHAIN_CONNECTED,
    }
    if settings.otlp_collector_address and chain != names.CHAIN_CONNECT:
        own |= tracing(settings.otlp_collector_address)
    return manager(chain, settings, own)


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
