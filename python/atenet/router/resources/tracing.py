"""OpenTelemetry spans of the ingress request, sent to the collector by Envoy."""

from __future__ import annotations

from atenet.router.address import Address
from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["traces_url", "tracing"]


def traces_url(collector: Address) -> str:
    """Where OTLP over HTTP takes spans."""
    return f"http://{collector}/v1/traces"


def tracing(collector: Address) -> Resource:
    """The caller's decision whether to record is kept; without one every request is recorded."""
    return {
        "provider": {
            "name": "envoy.tracers.opentelemetry",
            "typed_config": {
                "@type": type_url("envoy.config.trace.v3.OpenTelemetryConfig"),
                "http_service": {
                    "http_uri": {
                        "uri": traces_url(collector),
                        "cluster": names.CLUSTER_TRACES,
                        "timeout": "1s",
                    }
                },
                "service_name": "atenet-router",
            },
        },
        "spawn_upstream_span": False,
        # The URL's tag ends before the query string can begin.
        "max_path_tag_length": 1,
        "custom_tags": [_tag("ate.atespace", "atespace"), _tag("ate.actor", "name")],
    }


def _tag(tag: str, key: str) -> Resource:
    metadata_key = {"key": names.ASSIGNMENT, "path": [{"key": key}]}
    return {"tag": tag, "metadata": {"kind": {"request": {}}, "metadata_key": metadata_key}}
