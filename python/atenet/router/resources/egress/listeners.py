"""The gateway's listeners: one on the network, for workers' tunnels, and three inside Envoy.

```
tunnels (mTLS, CONNECT) -> first-bytes: http
                                        tls -> server-names (decided) -> inside: tls | passthrough | alert-N
                                        anything else: refused
```
"""

from __future__ import annotations

from atenet.router.egress_settings import EgressSettings
from atenet.router.resources.egress import names
from atenet.router.resources.egress.chains import first_chains, inside_chains
from atenet.router.resources.egress.http import server_name_manager, tunnel_manager
from atenet.router.resources.egress.tls import tunnel_tls
from atenet.router.resources.names import Resource, type_url

__all__ = ["egress_listeners"]

_RBAC = "envoy.extensions.filters.network.rbac.v3.RBAC"
_ACTION = "envoy.config.rbac.v3.Action"
_URI_SAN = "envoy.extensions.matching.common_inputs.ssl.v3.UriSanInput"
_STATE = "envoy.extensions.matching.common_inputs.network.v3.FilterStateInput"
_TRANSPORT = "envoy.extensions.matching.common_inputs.network.v3.TransportProtocolInput"
_PROTOCOL = "envoy.extensions.matching.common_inputs.network.v3.ApplicationProtocolInput"
# One SPIFFE ID in its one spelling: no percent sign, and no comma, by which several would be joined.
_ONE_ID = "spiffe://[a-z0-9._-]{1,255}(/[A-Za-z0-9._-]+)+"


def egress_listeners(settings: EgressSettings) -> list[Resource]:
    return [_tunnels(settings), _first(settings), _decide(settings), _inside(settings)]


def _tunnels(settings: EgressSettings) -> Resource:
    address = {"address": settings.listen_address, "port_value": settings.port_tunnels}
    return {
        "name": names.LISTENER_TUNNELS,
        "address": {"socket_address": address},
        "per_connection_buffer_limit_bytes": 1 << 20,
        "filter_chains": [
            {
                "name": names.CHAIN_TUNNEL,
                "transport_socket": tunnel_tls(),
                "transport_socket_connect_timeout": f"{settings.header_timeout}s",
                "filters": [_one_identity(), tunnel_manager(settings)],
            }
        ],
    }


def _first(settings: EgressSettings) -> Resource:
    """What an actor's first bytes are: HTTP, TLS, or (also where they do not come in time) something else."""
    http1 = ("'http/1.0'", "'http/1.1'", "'h2c'")
    spoken: Resource = _match(
        _PROTOCOL, {}, dict.fromkeys(http1, _go_to(names.CHAIN_HTTP)), _go_to(names.CHAIN_OTHER)
    )
    transports = {
        "tls": _go_to(names.CHAIN_SERVER_NAME),
        "raw_buffer": {"matcher": spoken},
    }
    return {
        **_internal(names.LISTENER_FIRST),
        "listener_filters": [
            _listener_filter("tls_inspector", "TlsInspector"),
            _listener_filter("http_inspector", "HttpInspector"),
        ],
        "listener_filters_timeout": f"{settings.egress_sniff_timeout}s",
        "continue_on_listener_filters_timeout": True,
        "filter_chain_matcher": _match(_TRANSPORT, {}, transports, _go_to(names.CHAIN_OTHER)),
        "filter_chains": first_chains(settings),
    }


def _decide(settings: EgressSettings) -> Resource:
    manager = server_name_manager(settings)
    chain = {"name": names.CHAIN_SERVER_NAME, "filters": [manager]}
    return {**_internal(names.LISTENER_DECIDE), "filter_chains": [chain]}


def _inside(settings: EgressSettings) -> Resource:
    """Which chain: as decided, by name. What was not decided has none, and is closed."""
    chains = inside_chains(settings)
    by_name = {chain["name"]: _go_to(chain["name"]) for chain in chains}
    return {
        **_internal(names.LISTENER_INSIDE),
        "filter_chain_matcher": _match(_STATE, {"key": names.CHAIN}, by_name),
        "filter_chains": chains,
    }


def _match(
    kind: str, config: Resource, by_value: Resource, otherwise: Resource | None = None
) -> Resource:
    tree = {
        "input": {"name": "input", "typed_config": {"@type": type_url(kind), **config}},
        "exact_match_map": {"map": by_value},
    }
    return {"matcher_tree": tree, **({"on_no_match": otherwise} if otherwise else {})}


def _go_to(chain: str) -> Resource:
    value = {"@type": type_url("google.protobuf.StringValue"), "value": chain}
    return {"action": {"name": "chain", "typed_config": value}}


def _listener_filter(name: str, message: str) -> Resource:
    kind = type_url(f"envoy.extensions.filters.listener.{name}.v3.{message}")
    return {"name": f"envoy.filters.listener.{name}", "typed_config": {"@type": kind}}


def _internal(name: str) -> Resource:
    # The limit of connections is for workers'; ours are as many as theirs need.
    return {"name": name, "internal_listener": {}, "ignore_global_conn_limit": True}


def _one_identity() -> Resource:
    """Closes a connection whose certificate carries no URI, several, or an odd spelling of one."""
    one_id: Resource = {
        "single_predicate": {
            "input": {"name": "uri_san", "typed_config": {"@type": type_url(_URI_SAN)}},
            "value_match": {"safe_regex": {"google_re2": {}, "regex": _ONE_ID}},
        }
    }
    allow = {"predicate": one_id, "on_match": _act("allow", "ALLOW")}
    return {
        "name": "envoy.filters.network.rbac",
        "typed_config": {
            "@type": type_url(_RBAC),
            "stat_prefix": "identity",
            "matcher": {
                "matcher_list": {"matchers": [allow]},
                "on_no_match": _act("deny", "DENY"),
            },
        },
    }


def _act(name: str, action: str) -> Resource:
    config = {"@type": type_url(_ACTION), "name": name, "action": action}
    return {"action": {"name": name, "typed_config": config}}
