"""Answers that Envoy makes by itself, put into the words of the error table."""

from __future__ import annotations

from atenet.router.refusals import Refusal, refusal
from atenet.router.resources import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["NOT_OURS", "details", "expression", "flags", "local_replies", "mapper", "status"]

# Of refusals: whether Envoy made it.
NOT_OURS = f"!response.code_details.startsWith('{names.REFUSAL_DETAILS}')"


def local_replies() -> Resource:
    """Maps Envoy's own failures to refusals. What the decision service answered is left as it is."""
    return {
        "mappers": [
            # The actor does not speak what the request needs.
            mapper(refusal("protocol-unsupported"), flags("UPE")),
            mapper(refusal("idle-timeout"), flags("SI", "UT")),
            # The tunnel's listener hides why it closed: no worker, a stale assignment, an actor that broke off.
            mapper(refusal("worker-unreachable"), flags("UF", "UC", "UO", "LR", "UR", "NC", "UH")),
            # The actor answered an upgrade with a success that is none; Envoy has dropped its body by then.
            mapper(refusal("actor-connect-failed"), details("websocket_handshake_unsuccessful")),
            mapper(refusal("control-plane-unavailable"), details("ext_proc_error")),
            mapper(refusal("head-too-large"), status(431)),
            mapper(refusal("method-not-allowed"), details("upgrade_failed")),
            # A head that took too long.
            mapper(refusal("bad-request"), status(408), code=408),
            # Whatever else Envoy refuses by itself, it refuses for the request's form.
            mapper(refusal("bad-request"), expression(NOT_OURS)),
        ],
    }


def mapper(row: Refusal, condition: Resource, *, code: int | None = None) -> Resource:
    """Answers as the row says, with another status if `code` is given."""
    headers = {"ate-reason": row.reason, "content-type": "text/plain"}
    if row.retry_after is not None:
        headers["retry-after"] = str(row.retry_after)
    return {
        "filter": condition,
        "status_code": code or row.status,
        # Without a newline: gRPC callers read the same text from grpc-message, where it would be spelled out.
        "body": {"inline_string": row.body},
        "headers_to_add": [
            {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
            for key, value in headers.items()
        ],
    }


def flags(*names_of_flags: str) -> Resource:
    return {"response_flag_filter": {"flags": list(names_of_flags)}}


def status(code: int) -> Resource:
    comparison = {"op": "EQ", "value": {"default_value": code, "runtime_key": "atenet.unused"}}
    return {"status_code_filter": {"comparison": comparison}}


def details(prefix: str) -> Resource:
    return expression(f"response.code_details.startsWith('{prefix}')")


def expression(text: str) -> Resource:
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
