"""Names that the egress resources and the decision service share (engine, extproc/egress)."""

from __future__ import annotations

__all__ = [
    "ALERTS",
    "CHAIN",
    "CHAIN_HTTP",
    "CHAIN_OTHER",
    "CHAIN_PASSTHROUGH",
    "CHAIN_SERVER_NAME",
    "CHAIN_TLS",
    "CHAIN_TUNNEL",
    "CLUSTER_ADDITIONAL",
    "CLUSTER_DECIDE",
    "CLUSTER_FIRST",
    "CLUSTER_INSIDE",
    "CLUSTER_MINT",
    "CLUSTER_NOWHERE",
    "CLUSTER_ORIGINS",
    "CLUSTER_ORIGINS_GRPC",
    "CLUSTER_ORIGINS_TCP",
    "CLUSTER_SECURE_ORIGINS",
    "CLUSTER_SECURE_ORIGINS_GRPC",
    "LISTENER_DECIDE",
    "LISTENER_FIRST",
    "LISTENER_INSIDE",
    "LISTENER_TUNNELS",
    "NOTED",
    "NO_SERVER_NAME",
    "SERVER_NAME_HEADER",
    "TUNNEL",
    "VERDICT",
    "alert_chain",
    "noted",
]  # fmt: skip

# Dynamic metadata that the decision service answers with.
VERDICT = "x-ate-egress"

# Connection state: which tunnel this is (all else of it is known to the decision service alone), and which filter chain
# was chosen for it.
TUNNEL = "x-ate-tunnel"
CHAIN = "x-ate-chain"

# How the name in a ClientHello travels to the decision service. No actor can set it: it is put on after its bytes.
SERVER_NAME_HEADER = "x-ate-server-name"

# What the log of a connection that passes through says; it has no metadata of its own.
NOTED = ("actor", "dialled", "host", "port", "rule")

# Filter chains: how the decision service knows what is asked, and how it says where the bytes go.
CHAIN_TUNNEL = "tunnel"
CHAIN_SERVER_NAME = "server-name"
CHAIN_OTHER = "other"
CHAIN_HTTP = "http"
CHAIN_TLS = "tls"
CHAIN_PASSTHROUGH = "passthrough"

# The alerts that refuse a ClientHello (engine, egress/denial.rs): decode_error, access_denied, internal_error,
# unrecognized_name.
ALERTS = (50, 49, 80, 112)

LISTENER_TUNNELS = "tunnels"
LISTENER_FIRST = "first-bytes"
LISTENER_DECIDE = "server-names"
LISTENER_INSIDE = "inside"

CLUSTER_FIRST = "first-bytes"
CLUSTER_DECIDE = "server-names"
CLUSTER_INSIDE = "inside"
CLUSTER_MINT = "sdsmint"
CLUSTER_NOWHERE = "nowhere"
CLUSTER_ADDITIONAL = "additional-decisions"
CLUSTER_ORIGINS = "origins"
CLUSTER_ORIGINS_GRPC = "origins_grpc"
CLUSTER_SECURE_ORIGINS = "secure_origins"
CLUSTER_SECURE_ORIGINS_GRPC = "secure_origins_grpc"
CLUSTER_ORIGINS_TCP = "origins_tcp"

# Asked for by no client: a connection without a server name never gets as far as to need a certificate.
NO_SERVER_NAME = "no-server-name.invalid"


def noted(key: str) -> str:
    """The connection state that holds it."""
    return f"x-ate-noted-{key}"


def alert_chain(description: int) -> str:
    return f"alert-{description}"
