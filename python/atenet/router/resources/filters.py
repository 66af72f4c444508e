"""The filters of a request: ask the decision service, then turn its answer into connection state."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.deciding import ask, carry
from atenet.router.resources.names import Resource, type_url
from atenet.router.settings import Settings

__all__ = ["carry_assignment", "carry_connect", "decide", "router"]

# Everything the decision needs, and nothing that might be a secret.
_FORWARDED = (
    names.TARGET_HEADER, ":method", ":authority", ":path", "host", "content-type", "traceparent", "tracestate",
)  # fmt: skip


def decide(settings: Settings) -> Resource:
    """Asks once a request, with its headers only. No answer, no way through."""
    attributes = [
        "xds.filter_chain_name",
        f"filter_state['{names.OUTER_ACTOR}']",
        f"filter_state['{names.OUTER_PORT}']",
    ]
    filter_ = ask("decisions", settings.decision_timeout, attributes, answer=names.ASSIGNMENT)
    filter_["typed_config"]["forward_rules"] = {
        "allowed_headers": {"patterns": [{"exact": name} for name in _FORWARDED]}
    }
    return filter_


def carry_assignment() -> Resource:
    """The assignment as state of the connection to the tunnel's listener.

    Shared ONCE: it reaches that listener and goes no further, so that tunnels of different actors to one worker
    still share one connection. Only the activation is hashed into the key of the pool.
    """
    return carry(
        _state("envoy.upstream.dynamic_host", _answer("worker_ip")),
        _state("envoy.upstream.dynamic_port", _answer("worker_port")),
        _state("envoy.network.upstream_subject_alt_names", _answer("worker_spiffe_id")),
        _state(names.TUNNEL_AUTHORITY, _answer("authority"), "envoy.string"),
        _state(names.ACTOR, _answer("actor"), "envoy.string"),
        _state(names.ACTIVATION, _answer("activation"), "envoy.hashable_string"),
    )


def carry_connect() -> Resource:
    """What the CONNECT named, for the requests inside it."""
    return carry(
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


def _state(key: str, value: str, factory: str | None = None) -> Resource:
    state: Resource = {
        "object_key": key,
        "format_string": {"text_format_source": {"inline_string": value}},
        "shared_with_upstream": "ONCE",
    }
    return {**state, "factory_key": factory} if factory else state
