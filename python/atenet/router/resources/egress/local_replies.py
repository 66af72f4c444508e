"""Answers that Envoy makes by itself as a gateway, put into the words of the engine's table of denials."""

from __future__ import annotations

from atenet.router.refusals import egress_denial
from atenet.router.resources.local_replies import (
    NOT_OURS,
    details,
    expression,
    flags,
    mapper,
    status,
)
from atenet.router.resources.names import Resource

__all__ = ["egress_replies"]

# What BoringSSL and Envoy say of an origin's certificate, and the row that means the same.
_DISTRUST = (
    ("certificate has expired", "origin-untrusted/expired"),
    ("certificate is not yet valid", "origin-untrusted/not-yet-valid"),
    ("verify SAN list", "origin-untrusted/wrong-name"),
    ("issuer certificate", "origin-untrusted/unknown-issuer"),
    ("self-signed", "origin-untrusted/unknown-issuer"),
    ("self signed", "origin-untrusted/unknown-issuer"),
    ("unable to verify", "origin-untrusted/unknown-issuer"),
    ("TLS_error", "origin-untrusted/other"),
)


def egress_replies() -> Resource:
    """What the decision service answered is left as it is."""
    untrusted = [
        mapper(
            egress_denial(row), expression(f"upstream.transport_failure_reason.contains('{said}')")
        )
        for said, row in _DISTRUST
    ]
    rows = [
        ("origin-unreachable", flags("UF", "UH", "NC", "UO", "NR", "DF")),
        ("protocol-unsupported", flags("UPE")),
        ("origin-broken", flags("UC", "UR", "LR")),
        ("idle-timeout", flags("SI", "UT")),
        ("control-plane-unavailable", details("ext_proc_error")),
        ("head-too-large", status(431)),
        ("bad-host", details("missing_host_header")),
        ("method-not-allowed", details("upgrade_failed")),
    ]
    others = [mapper(egress_denial(row), condition) for row, condition in rows]
    slow = mapper(egress_denial("bad-request"), status(408), code=408)
    # Whatever else Envoy refuses by itself, it refuses for the request's form; and it always says why. What is refused
    # without details is a further processor's word.
    form = expression(f"response.code_details != '' && {NOT_OURS}")
    return {"mappers": [*untrusted, *others, slow, mapper(egress_denial("bad-request"), form)]}
