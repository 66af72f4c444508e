"""One JSON line a request on Envoy's stderr: no header values, no query strings."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["access_log"]

_STDERR = "envoy.extensions.access_loggers.stream.v3.StderrAccessLog"


def access_log(chain: str) -> Resource:
    fields = {
        "event": "request",
        "time": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
        "chain": chain,
        "actor": f"%DYNAMIC_METADATA({names.ASSIGNMENT}:actor)%",
        "worker": f"%DYNAMIC_METADATA({names.ASSIGNMENT}:worker_ip)%",
        "resume": f"%DYNAMIC_METADATA({names.ASSIGNMENT}:resume)%",
        "method": "%REQ(:METHOD)%",
        "path": "%PATH(NQ:PATH)%",
        "protocol": "%PROTOCOL%",
        "status": "%RESPONSE_CODE%",
        "flags": "%RESPONSE_FLAGS%",
        "details": "%RESPONSE_CODE_DETAILS%",
        "reason": "%RESP(ATE-REASON)%",
        "duration_ms": "%DURATION%",
        "bytes_received": "%BYTES_RECEIVED%",
        "bytes_sent": "%BYTES_SENT%",
        "client": "%DOWNSTREAM_PEER_URI_SAN%",
    }
    return {
        "name": "envoy.access_loggers.stderr",
        "typed_config": {
            "@type": type_url(_STDERR),
            "log_format": {"json_format": fields, "omit_empty_values": True},
        },
    }
