"""The gateway's HTTP connection managers: one for workers' tunnels, one for requests inside them."""

from __future__ import annotations

from atenet.router.egress_settings import EgressSettings
from atenet.router.resources.egress import names
from atenet.router.resources.egress.access_log import denials_log, requests_log
from atenet.router.resources.egress.filters import (
    additional,
    carry_chain,
    carry_origin,
    carry_tunnel,
    dial,
    judge,
    judge_server_name,
    open_tunnel,
)
from atenet.router.resources.egress.local_replies import egress_replies
from atenet.router.resources.filters import router
from atenet.router.resources.hygiene import strip_internal
from atenet.router.resources.manager import manager
from atenet.router.resources.names import Resource

__all__ = ["request_manager", "server_name_manager", "tunnel_manager"]

_WITHOUT_DEADLINE = {"timeout": "0s", "idle_timeout": "0s"}
# How long Envoy keeps a connection that it has nothing more to say on, lest a reset overtake its last words. An actor
# sees the end only then; on connections within Envoy nothing can be overtaken.
_LAST_WORDS = {"delayed_close_timeout": "0.2s"}
_NO_LAST_WORDS = {"delayed_close_timeout": "0s"}


def tunnel_manager(settings: EgressSettings) -> Resource:
    """One CONNECT a connection. The certificate goes along with the question, since it tells whose tunnel it is."""
    connect = {"upgrade_type": "CONNECT", "connect_config": {}}
    onward = {"cluster": names.CLUSTER_FIRST, **_WITHOUT_DEADLINE, "upgrade_configs": [connect]}
    own: Resource = {
        "codec_type": "HTTP1",
        "http_filters": [open_tunnel(settings), carry_tunnel(), router()],
        "route_config": _routes(
            names.CHAIN_TUNNEL, [{"match": {"connect_matcher": {}}, "route": onward}]
        ),
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "local_reply_config": egress_replies(),
        "access_log": [requests_log(names.CHAIN_TUNNEL)],
        "use_remote_address": True,
        "forward_client_cert_details": "SANITIZE_SET",
        "set_current_client_cert_details": {"cert": True},
        **_LAST_WORDS,
    }
    made = manager(names.CHAIN_TUNNEL, settings, own)
    options = made["typed_config"]["common_http_protocol_options"]
    made["typed_config"]["common_http_protocol_options"] = {
        **options,
        "max_requests_per_connection": 1,
    }
    return made


def server_name_manager(settings: EgressSettings) -> Resource:
    """One ClientHello a connection, as a CONNECT of our own."""
    connect = {"upgrade_type": "CONNECT", "connect_config": {}}
    onward = {"cluster": names.CLUSTER_INSIDE, **_WITHOUT_DEADLINE, "upgrade_configs": [connect]}
    route = {"match": {"connect_matcher": {}}, "route": onward}
    own: Resource = {
        "codec_type": "HTTP1",
        "http_filters": [judge_server_name(settings), carry_chain(), router()],
        "route_config": _routes(names.CHAIN_SERVER_NAME, [route]),
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "early_header_mutation_extensions": [],
        "use_remote_address": False,
        **_NO_LAST_WORDS,
    }
    return manager(names.CHAIN_SERVER_NAME, settings, own)


def request_manager(chain: str, settings: EgressSettings) -> Resource:
    """Serves the requests of one actor's connection, each judged by itself."""
    more = [additional()] if settings.experimental_additional_egress_extproc_service else []
    clear = (names.CLUSTER_ORIGINS_GRPC, names.CLUSTER_ORIGINS)
    secure = (names.CLUSTER_SECURE_ORIGINS_GRPC, names.CLUSTER_SECURE_ORIGINS)
    grpc, plain = clear if chain == names.CHAIN_HTTP else secure
    routes: list[Resource] = [
        {"match": {"prefix": "/", "grpc": {}}, "route": {"cluster": grpc, "timeout": "0s"}},
        {"match": {"prefix": "/"}, "route": {"cluster": plain, "timeout": "0s"}},
    ]
    own: Resource = {
        "http_filters": [
            strip_internal(),
            judge(settings),
            carry_origin(),
            *more,
            dial(),
            router(),
        ],
        "route_config": _routes(chain, routes),
        # Both are accepted so that they get an answer of the table rather than Envoy's own: neither may leave.
        "upgrade_configs": [{"upgrade_type": "websocket"}, {"upgrade_type": "CONNECT"}],
        "local_reply_config": egress_replies(),
        "access_log": [requests_log(chain), denials_log()],
        "use_remote_address": False,
        **_NO_LAST_WORDS,
    }
    return manager(chain, settings, own)


def _routes(chain: str, routes: list[Resource]) -> Resource:
    host = {
        "name": chain,
        "domains": ["*"],
        "routes": routes,
        # Envoy adds it to every request; what an actor says of itself there no origin can tell from it.
        "request_headers_to_remove": ["x-forwarded-proto"],
    }
    return {"name": chain, "virtual_hosts": [host]}
