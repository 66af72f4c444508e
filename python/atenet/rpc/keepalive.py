"""Keep-alive for both ends, so that a peer that vanished without a FIN is noticed in seconds."""

from __future__ import annotations

from typing import Any

__all__ = ["CLIENT_OPTIONS", "SERVER_OPTIONS"]

Options = tuple[tuple[str, Any], ...]

_PROBE: Options = (
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

CLIENT_OPTIONS: Options = (
    *_PROBE,
    ("grpc.http2.max_pings_without_data", 0),
    # After a restart of the peer a client must be back within seconds, not after two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)

SERVER_OPTIONS: Options = (
    *_PROBE,
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.http2.max_ping_strikes", 0),
    # A taken port is an error, never a silent share of its connections.
    ("grpc.so_reuseport", 0),
)
