"""OpenTelemetry spans of the ingress request, sent to the collector by Envoy."""

from __future__ import annotations

from atenet.address import Address
from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["tracing"]


_REQUEST_IDS = "envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig"


def tracing(collector: Address) -> Resource:
    """What a connection manager needs to trace its requests.

    The caller's decision whether to record is kept; without one every request is recorded.
    """
    return {
        "tracing": _provider(collector),
        # Without this Envoy would draw lots by a request id, and we make none.
        "request_id_extension": {
            "typed_config": {
                "@type": type_url(_REQUEST_IDS),
                "pack_trace_reason": False,
                "use_request_id_for_trace_sampling": False,
            }
        },
    }


def _provider(collector: Address) -> Resource:
    return {
        "provider": {
            "name": "envoy.tracers.opentelemetry",
            "typed_config": {
                "@type": type_url("envoy.config.trace.v3.OpenTelemetryConfig"),
                "http_service": {
                    "http_uri": {
                        "uri": f"http://{collector}/v1/traces",
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
