"""The filters of a tunnel and of what is inside: ask the decision service, turn its answer into connection state."""

from __future__ import annotations

from atenet.router.egress_settings import EgressSettings
from atenet.router.resources import names as shared
from atenet.router.resources.deciding import EXT_PROC, HEADERS_ONLY, ask, carry
from atenet.router.resources.egress import names
from atenet.router.resources.egress.origins import addresses
from atenet.router.resources.names import Resource, type_url

__all__ = [
    "additional",
    "carry_chain",
    "carry_origin",
    "carry_tunnel",
    "dial",
    "judge",
    "judge_server_name",
    "open_tunnel",
    "refuse_other",
]

_NETWORK_EXT_PROC = "envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor"
_TUNNEL_STATE = f"filter_state['{names.TUNNEL}']"


def open_tunnel(settings: EgressSettings) -> Resource:
    """Asks for each CONNECT, and keeps the question open for as long as the tunnel lives.

    A CONNECT never has trailers, so their answer stays due: by that the decision service knows when a tunnel ends, and
    can end one itself.
    """
    mode = {**HEADERS_ONLY, "request_trailer_mode": "SEND"}
    return _decide("tunnels", settings, ["xds.filter_chain_name"], mode)


def judge(settings: EgressSettings) -> Resource:
    """Asks for each request inside a tunnel. Trailers are looked at where a rule replaced a header."""
    attributes = ["xds.filter_chain_name", _TUNNEL_STATE]
    filter_ = _decide("requests", settings, attributes)
    # The one spelling of the host is the decision's to set.
    filter_["typed_config"] |= {
        "allow_mode_override": True,
        "mutation_rules": {"allow_all_routing": True},
    }
    return filter_


def additional() -> Resource:
    """A further service behind ours: it sees what origins are to get, and may not change where that goes."""
    return {
        "name": "additional",
        "typed_config": {
            "@type": type_url(EXT_PROC),
            "stat_prefix": "additional",
            "grpc_service": {"envoy_grpc": {"cluster_name": names.CLUSTER_ADDITIONAL}},
            "failure_mode_allow": False,
            "status_on_error": {"code": "ServiceUnavailable"},
            "message_timeout": "5s",
            "processing_mode": HEADERS_ONLY,
            "mutation_rules": {"disallow_system": True},
            "route_cache_action": "RETAIN",
        },
    }


def _decide(
    stat: str, settings: EgressSettings, attributes: list[str], mode: Resource = HEADERS_ONLY
) -> Resource:
    limit = settings.decision_timeout
    return ask(stat, limit, attributes, answer=names.VERDICT, mode=mode)


def carry_tunnel() -> Resource:
    """Which tunnel it is, for all that comes out of it, over each of Envoy's own listeners.

    Hashable: it is part of the key of every pool of connections on the way, so that none ever serves another tunnel.
    """
    return carry(_state(names.TUNNEL, "tunnel", "envoy.hashable_string", shared="TRANSITIVE"))


def judge_server_name(settings: EgressSettings) -> Resource:
    """Asks for each ClientHello."""
    attributes = ["xds.filter_chain_name", _TUNNEL_STATE]
    return _decide("server_names", settings, attributes)


def carry_chain() -> Resource:
    """Where the bytes go, and for those that pass through: to which address."""
    return carry(
        _state(names.CHAIN, "chain", "envoy.string"),
        _state("envoy.upstream.dynamic_host", "address"),
        _state("envoy.upstream.dynamic_port", "port"),
        *(_state(names.noted(key), key, "envoy.string") for key in names.NOTED),
    )


def refuse_other(settings: EgressSettings) -> Resource:
    """Shows the decision service what is neither HTTP nor TLS, which says how it is refused: nothing of it goes on."""
    return {
        "name": "envoy.filters.network.ext_proc",
        "typed_config": {
            "@type": type_url(_NETWORK_EXT_PROC),
            "stat_prefix": "other",
            "grpc_service": {"envoy_grpc": {"cluster_name": shared.CLUSTER_DECISIONS}},
            "failure_mode_allow": False,
            "message_timeout": f"{settings.decision_timeout}s",
            "processing_mode": {"process_read": "STREAMED", "process_write": "SKIP"},
            "connection_attributes": [_TUNNEL_STATE],
        },
    }


def carry_origin() -> Resource:
    """Where a request goes: an address that was checked, and the name that its certificate must carry."""
    return carry(
        _state("envoy.upstream.dynamic_host", "address"),
        _state("envoy.upstream.dynamic_port", "port"),
        _state("envoy.network.upstream_server_name", "server_name"),
        _state("envoy.network.upstream_subject_alt_names", "certificate_name"),
    )


def dial() -> Resource:
    return {
        "name": "envoy.filters.http.dynamic_forward_proxy",
        "typed_config": {
            "@type": type_url(
                "envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig"
            ),
            "dns_cache_config": addresses(),
            "allow_dynamic_host_from_filter_state": True,
        },
    }


def _state(key: str, answer: str, factory: str | None = None, *, shared: str = "ONCE") -> Resource:
    """What the answer does not name is not set."""
    value = f"%DYNAMIC_METADATA({names.VERDICT}:{answer})%"
    state: Resource = {
        "object_key": key,
        "format_string": {
            "text_format_source": {"inline_string": value},
            "omit_empty_values": True,
        },
        "skip_if_empty": True,
        "shared_with_upstream": shared,
    }
    return {**state, "factory_key": factory} if factory else state
