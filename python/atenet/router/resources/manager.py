"""What every HTTP connection manager of ours has in common: limits, strictness, and that messages pass as they are."""

from __future__ import annotations

from typing import Protocol

from atenet.router.resources import names
from atenet.router.resources.clusters import LARGEST_WINDOW, STREAM_WINDOW
from atenet.router.resources.hygiene import early_header_mutation, ignored_upgrades
from atenet.router.resources.names import Resource, type_url

__all__ = ["Limits", "manager"]

_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


class Limits(Protocol):
    """Seconds."""

    @property
    def stream_idle_timeout(self) -> float: ...
    @property
    def header_timeout(self) -> float: ...
    @property
    def client_idle_timeout(self) -> float: ...


def manager(chain: str, limits: Limits, own: Resource) -> Resource:
    """`own`: filters, routes, and whatever else is this chain's alone; it wins."""
    common: Resource = {
        "@type": type_url(_MANAGER),
        "stat_prefix": chain,
        "early_header_mutation_extensions": early_header_mutation(),
        "stream_idle_timeout": f"{limits.stream_idle_timeout}s",
        "request_headers_timeout": f"{limits.header_timeout}s",
        "common_http_protocol_options": {
            "idle_timeout": f"{limits.client_idle_timeout}s",
            "max_connection_duration": names.CONNECTION_LIFETIME,
        },
        "http1_safe_max_connection_duration": True,
        "http_protocol_options": {
            "enable_trailers": True,
            "accept_http_10": True,
            "allow_custom_methods": True,
            "ignore_http_11_upgrade": ignored_upgrades(),
        },
        "http2_protocol_options": {
            "allow_connect": True,
            # A malformed request costs its own stream, not the connection's others.
            "override_stream_error_on_invalid_http_message": True,
            "initial_stream_window_size": STREAM_WINDOW,
            "initial_connection_window_size": LARGEST_WINDOW,
        },
        # Requests and answers pass as they were sent: no ids, no names, no client addresses are added.
        "generate_request_id": False,
        "preserve_external_request_id": True,
        "server_header_transformation": "PASS_THROUGH",
        "skip_xff_append": True,
        # All interim answers are the other side's own, 103 included; Envoy knows no finer choice.
        "proxy_100_continue": True,
    }
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {**common, **own},
    }
