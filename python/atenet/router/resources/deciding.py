"""How either direction asks the decision service, and keeps what it answers as state of a connection."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["EXT_PROC", "HEADERS_ONLY", "ask", "carry"]

EXT_PROC = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
_SET_FILTER_STATE = "envoy.extensions.filters.http.set_filter_state.v3.Config"

HEADERS_ONLY = {
    "request_header_mode": "SEND",
    "response_header_mode": "SKIP",
    "request_body_mode": "NONE",
    "response_body_mode": "NONE",
    "request_trailer_mode": "SKIP",
    "response_trailer_mode": "SKIP",
}


def ask(
    stat: str, limit: float, attributes: list[str], *, answer: str, mode: Resource = HEADERS_ONLY
) -> Resource:
    """No answer within `limit` seconds: no way through. `answer`: the metadata namespace that holds it."""
    return {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": type_url(EXT_PROC),
            "stat_prefix": stat,
            "grpc_service": {"envoy_grpc": {"cluster_name": names.CLUSTER_DECISIONS}},
            "failure_mode_allow": False,
            "status_on_error": {"code": "ServiceUnavailable"},
            "message_timeout": f"{limit}s",
            "processing_mode": mode,
            "request_attributes": attributes,
            "metadata_options": {"receiving_namespaces": {"untyped": [answer]}},
            "route_cache_action": "RETAIN",
        },
    }


def carry(*values: Resource) -> Resource:
    """Sets the state before the request goes on."""
    return {
        "name": "envoy.filters.http.set_filter_state",
        "typed_config": {"@type": type_url(_SET_FILTER_STATE), "on_request_headers": list(values)},
    }
