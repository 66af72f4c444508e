"""OpenTelemetry spans of the ingress request, sent to the collector by Envoy."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["tracing"]


def tracing() -> Resource:
    """The client's own decision to sample stands; without one, every request is sampled by the collector's rules."""
    return {
        "provider": {
            "name": "envoy.tracers.opentelemetry",
            "typed_config": {
                "@type": type_url("envoy.config.trace.v3.OpenTelemetryConfig"),
                "grpc_service": {
                    "envoy_grpc": {"cluster_name": names.CLUSTER_TRACES},
                    "timeout": "1s",
                },
                "service_name": "atenet-router",
            },
        },
        "spawn_upstream_span": False,
        # Paths are recorded without their query string.
        "max_path_tag_length": 1,
    }
