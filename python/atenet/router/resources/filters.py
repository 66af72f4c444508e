"""The filters of a request: ask the decision service, then turn its answer into connection state."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url
from atenet.router.settings import Settings

__all__ = ["carry_assignment", "carry_connect", "decide", "router"]

_EXT_PROC = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
_SET_FILTER_STATE = "envoy.extensions.filters.http.set_filter_state.v3.Config"

# Everything the decision needs, and nothing that might be a secret.
_FORWARDED = (
    names.TARGET_HEADER, ":method", ":authority", ":path", "host", "content-type", "traceparent", "tracestate",
)  # fmt: skip


def decide(settings: Settings) -> Resource:
    """Asks once a request, with its headers only. No answer, no way through."""
    return {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": type_url(_EXT_PROC),
            "stat_prefix": "decisions",
            "grpc_service": {"envoy_grpc": {"cluster_name": names.CLUSTER_DECISIONS}},
            "failure_mode_allow": False,
            "status_on_error": {"code": "ServiceUnavailable"},
            "message_timeout": f"{settings.decision_timeout}s",
            "processing_mode": {
                "request_header_mode": "SEND",
                "response_header_mode": "SKIP",
                "request_body_mode": "NONE",
                "response_body_mode": "NONE",
                "request_trailer_mode": "SKIP",
                "response_trailer_mode": "SKIP",
            },
            "forward_rules": {
                "allowed_headers": {"patterns": [{"exact": name} for name in _FORWARDED]}
            },
            "request_attributes": [
                "xds.filter_chain_name",
                f"filter_state['{names.OUTER_ACTOR}']",
                f"filter_state['{names.OUTER_PORT}']",
            ],
            "metadata_options": {"receiving_namespaces": {"untyped": [names.ASSIGNMENT]}},
            "route_cache_action": "RETAIN",
        },
    }


def carry_assignment() -> Resource:
    """The assignment as state of the connection to the tunnel's listener.

    Shared ONCE: it reaches that listener and goes no further, so that tunnels of different actors to one worker
    still share one connection. Only the activation is hashed into the key of the pool.
    """
    return _set_filter_state(
        _state("envoy.upstream.dynamic_host", _answer("worker_ip")),
        _state("envoy.upstream.dynamic_port", _answer("worker_port")),
        _state("envoy.network.upstream_subject_alt_names", _answer("worker_spiffe_id")),
        _state(names.TUNNEL_AUTHORITY, _answer("authority"), "envoy.string"),
        _state(names.ACTOR, _answer("actor"), "envoy.string"),
        _state(names.ACTIVATION, _answer("activation"), "envoy.hashable_string"),
    )


def carry_connect() -> Resource:
    """What the CONNECT named, for the requests inside it."""
    return _set_filter_state(
        _state(names.OUTER_ACTOR, _answer("actor"), "envoy.string"),
        _state(names.OUTER_PORT, _answer("port"), "envoy.string"),
    )


def router() -> Resource:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {
            "@type": type_url("envoy.extensions.filters.http.router.v3.Router"),
            "suppress_envoy_headers": True,
        },
    }


def _answer(key: str) -> str:
    return f"%DYNAMIC_METADATA({names.ASSIGNMENT}:{key})%"


def _set_filter_state(*values: Resource) -> Resource:
    return {
        "name": "envoy.filters.http.set_filter_state",
        "typed_config": {"@type": type_url(_SET_FILTER_STATE), "on_request_headers": list(values)},
    }


def _state(key: str, value: str, factory: str | None = None) -> Resource:
    state: Resource = {
        "object_key": key,
        "format_string": {"text_format_source": {"inline_string": value}},
        "shared_with_upstream": "ONCE",
    }
    return {**state, "factory_key": factory} if factory else state
