"""Names that Envoy's resources and the decision service share. All begin with x-ate-: clients cannot set them."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ACTIVATION",
    "ACTOR",
    "ASSIGNMENT",
    "CHAIN_CONNECT",
    "CHAIN_CONNECTED",
    "CHAIN_INGRESS",
    "CLUSTER_CONNECTED",
    "CLUSTER_DECISIONS",
    "CLUSTER_TRACES",
    "CLUSTER_TUNNEL_HTTP1",
    "CLUSTER_TUNNEL_HTTP2",
    "CLUSTER_WORKERS",
    "CONNECTION_LIFETIME",
    "LISTENER_CONNECTED",
    "LISTENER_TUNNEL",
    "OUTER_ACTOR",
    "OUTER_PORT",
    "REFUSAL_DETAILS",
    "TARGET_HEADER",
    "TUNNEL_AUTHORITY",
    "Resource",
    "type_url",
]  # fmt: skip

Resource = dict[str, Any]
"""A resource in the JSON form of its protobuf message, as Envoy's documentation shows them."""

# Of a client's connection: none reaches it but by the drain (see atenet.router.overload).
CONNECTION_LIFETIME = "315360000s"

TARGET_HEADER = "ate-target-actor"

# Dynamic metadata that the decision service answers with.
ASSIGNMENT = "x-ate-assignment"

# Connection state handed from one of Envoy's listeners to the next.
ACTOR = "x-ate-actor"
ACTIVATION = "x-ate-activation"
TUNNEL_AUTHORITY = "x-ate-tunnel-authority"
# What a client's CONNECT named. Names of their own: a shared value cannot be set again by the next listener.
OUTER_ACTOR = "x-ate-outer-actor"
OUTER_PORT = "x-ate-outer-port"

# How the details of the decision service's own refusals begin in Envoy's records.
REFUSAL_DETAILS = "ate_"

# Filter chains: how the decision service knows which listener asks.
CHAIN_INGRESS = "ingress"
CHAIN_CONNECT = "connect"
CHAIN_CONNECTED = "connected"

LISTENER_CONNECTED = "connected"
LISTENER_TUNNEL = "tunnel"

CLUSTER_DECISIONS = "decisions"
CLUSTER_CONNECTED = "connected"
CLUSTER_TUNNEL_HTTP1 = "tunnel_http1"
CLUSTER_TUNNEL_HTTP2 = "tunnel_http2"
CLUSTER_WORKERS = "workers"
CLUSTER_TRACES = "traces"


def type_url(message: str) -> str:
    """The `@type` of a message, given its full name."""
    return f"type.googleapis.com/{message}"
