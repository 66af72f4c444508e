"""One JSON line a request on Envoy's stderr, with the fields of the native dataplane's.

No header values, no paths, no query strings.
"""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["access_log"]

_STDERR = "envoy.extensions.access_loggers.stream.v3.StderrAccessLog"

# As the engine's `Outcome` tells them apart.
_OUTCOME = (
    "'ate-reason' in response.headers ? 'refused' : "
    "response.code_details == 'via_upstream' ? 'ok' : "
    "response.code_details.startsWith('downstream') ? 'client-gone' : 'upstream-reset'"
)


def access_log(chain: str) -> Resource:
    fields = {
        "time": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
        "level": "info",
        "logger": "atenet.access",
        "message": "request",
        "listener": chain,
        "atespace": _noted("atespace"),
        "actor": _noted("name"),
        "client": "%DOWNSTREAM_PEER_URI_SAN%",
        "method": "%REQ(:METHOD)%",
        "protocol": "%PROTOCOL%",
        "status": "%RESPONSE_CODE%",
        "outcome": f"%CEL({_OUTCOME})%",
        "reason": "%RESP(ATE-REASON)%",
        "details": "%RESPONSE_CODE_DETAILS%",
        "resume": _noted("resume"),
        "route_ms": _noted("route_ms"),
        "duration_ms": "%DURATION%",
        "bytes_in": "%BYTES_RECEIVED%",
        "bytes_out": "%BYTES_SENT%",
        "upstream": _noted("worker"),
    }
    return {
        "name": "envoy.access_loggers.stderr",
        "typed_config": {
            "@type": type_url(_STDERR),
            "log_format": {"json_format": fields, "omit_empty_values": True},
        },
    }


def _noted(key: str) -> str:
    return f"%DYNAMIC_METADATA({names.ASSIGNMENT}:{key})%"
