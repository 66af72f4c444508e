"""JSON lines on Envoy's stderr: one a request or tunnel, and one for each denial that only Envoy knows of.

No header values, no paths, no query strings.
"""

from __future__ import annotations

from atenet.router.resources.egress import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["denials_log", "passed_log", "requests_log"]

_STDERR = "envoy.extensions.access_loggers.stream.v3.StderrAccessLog"
_FILTER = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
_TIME = "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%"

# Envoy's own refusals: the decision service logs its own, and an origin's answers are none.
_OWN_REFUSAL = "'ate-reason' in response.headers && !response.code_details.startsWith('ate_')"


def requests_log(chain: str) -> Resource:
    return _stderr(
        {
            "logger": "atenet.access",
            "message": "egress request",
            "listener": chain,
            "atespace": _noted("atespace"),
            "name": _noted("name"),
            "host": _noted("host"),
            "method": "%REQ(:METHOD)%",
            "protocol": "%PROTOCOL%",
            "status": "%RESPONSE_CODE%",
            "refused": "%RESP(ATE-REASON)%",
            "details": "%RESPONSE_CODE_DETAILS%",
            "duration_ms": "%DURATION%",
            "bytes_in": "%BYTES_RECEIVED%",
            "bytes_out": "%BYTES_SENT%",
        }
    )


def denials_log() -> Resource:
    """As the engine writes them."""
    told = {"reason": "%RESP(ATE-REASON)%", "detail": "%RESPONSE_CODE_DETAILS%"}
    known = {key: _noted(key) for key in names.NOTED}
    return {**_stderr(_denial(known) | told), "filter": _only_if(_OWN_REFUSAL)}


def passed_log() -> Resource:
    """What passes through says nothing but whether its origin was reached."""
    told = {"reason": "origin-unreachable", "detail": "%RESPONSE_FLAGS_LONG%"}
    known = {key: f"%FILTER_STATE({names.noted(key)}:PLAIN)%" for key in names.NOTED}
    return {**_stderr(_denial(known) | told), "filter": _not_connected()}


def _denial(known: Resource) -> Resource:
    return {"logger": "atenet.egress", "message": "egress denied", **known}


def _not_connected() -> Resource:
    """Neither dialled nor resolved (which nothing is: it is an address)."""
    return {"response_flag_filter": {"flags": ["UF", "UH", "UO", "NC", "DF"]}}


def _stderr(fields: Resource) -> Resource:
    return {
        "name": "envoy.access_loggers.stderr",
        "typed_config": {
            "@type": type_url(_STDERR),
            "log_format": {
                "json_format": {"time": _TIME, "level": "info", **fields},
                "omit_empty_values": True,
            },
        },
    }


def _only_if(expression: str) -> Resource:
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": {"@type": type_url(_FILTER), "expression": expression},
        }
    }


def _noted(key: str) -> str:
    return f"%DYNAMIC_METADATA({names.VERDICT}:{key})%"
