"""Answers that Envoy makes by itself, put into the words of the error table."""

from __future__ import annotations

from atenet.router.refusals import refusal
from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["local_replies"]


def local_replies() -> Resource:
    """Maps Envoy's own failures to refusals. What the decision service answered is left as it is."""
    return {
        "mappers": [
            # The actor does not speak what the request needs.
            _mapper("protocol-unsupported", _flags("UPE")),
            _mapper("idle-timeout", _flags("SI", "UT")),
            # The tunnel's listener hides why it closed: no worker, a stale assignment, an actor that broke off.
            _mapper("worker-unreachable", _flags("UF", "UC", "UO", "LR", "UR", "NC", "UH")),
            # The actor answered an upgrade with a success that is none; Envoy has dropped its body by then.
            _mapper("actor-connect-failed", _details("websocket_handshake_unsuccessful")),
            _mapper("control-plane-unavailable", _details("ext_proc_error")),
            _mapper("head-too-large", _status(431)),
            _mapper("method-not-allowed", _details("upgrade_failed")),
            # A head that took too long.
            _mapper("bad-request", _status(408), status=408),
            # Whatever else Envoy refuses by itself, it refuses for the request's form.
            _mapper("bad-request", _not_ours()),
        ],
    }


def _mapper(reason: str, condition: Resource, *, status: int | None = None) -> Resource:
    row = refusal(reason)
    headers = {"ate-reason": row.reason, "content-type": "text/plain"}
    if row.retry_after is not None:
        headers["retry-after"] = str(row.retry_after)
    return {
        "filter": condition,
        "status_code": status or row.status,
        # Without a newline: gRPC callers read the same text from grpc-message, where it would be spelled out.
        "body": {"inline_string": row.body},
        "headers_to_add": [
            {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
            for key, value in headers.items()
        ],
    }


def _flags(*flags: str) -> Resource:
    return {"response_flag_filter": {"flags": list(flags)}}


def _status(code: int) -> Resource:
    comparison = {"op": "EQ", "value": {"default_value": code, "runtime_key": "atenet.unused"}}
    return {"status_code_filter": {"comparison": comparison}}


def _details(prefix: str) -> Resource:
    return _expression(f"response.code_details.startsWith('{prefix}')")


def _not_ours() -> Resource:
    return _expression(f"!response.code_details.startsWith('{names.REFUSAL_DETAILS}')")


def _expression(text: str) -> Resource:
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": {
                "@type": type_url(
                    "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
                ),
                "expression": text,
            },
        }
    }
