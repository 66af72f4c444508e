"""Egress policies as callers may write them. The rules are the engine's to judge: what it takes
here is what the gateways match by.

What is unknown is refused here, unlike elsewhere: a field that a newer client sets may narrow a
rule, and a rule without it would then let more through than its author meant.
"""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from atenet._engine import validate_egress_policy
from atenet.ateapi.failure import invalid
from atenet.ateapi.validate import fields
from atenet.proto import ateapi_pb2 as pb

__all__ = ["for_create", "for_update"]

_AT = "egress_policy"
_NAME = "default"
# Gateways must be able to read it back in one gRPC message (4 MiB by default).
_MAX_BYTES = 3 * 1024 * 1024
# Faults told at a time: who sends many has one mistake many times.
_TOLD = 5


def for_create(policy: pb.EgressPolicy, atespace: str) -> pb.EgressPolicy:
    """A new policy of the fields that a caller may set. Raises InvalidArgument."""
    _metadata(policy, atespace)
    fields.metadata_for_create(f"{_AT}.metadata", policy.metadata, in_atespace=True)
    _rules(policy)
    meta = pb.ResourceMetadata(atespace=atespace, name=_NAME)
    return pb.EgressPolicy(metadata=meta, rules=policy.rules)


def for_update(policy: pb.EgressPolicy, atespace: str) -> pb.EgressPolicy:
    """The same for a whole-object update; uid and version say what the caller saw."""
    _metadata(policy, atespace)
    fields.seen(f"{_AT}.metadata", policy.metadata)
    _rules(policy)
    return policy


def _metadata(policy: pb.EgressPolicy, atespace: str) -> None:
    if policy.metadata.name != _NAME:
        raise invalid(f"{_AT}.metadata.name", f"must be {_NAME!r}: an actor has one policy")
    if policy.metadata.atespace != atespace:
        raise invalid(f"{_AT}.metadata.atespace", "must be the actor's")


def _rules(policy: pb.EgressPolicy) -> None:
    fields.size(_AT, policy, _MAX_BYTES)
    _nothing_unknown(_AT, policy)
    faults = validate_egress_policy(policy.SerializeToString())
    if not faults:
        return
    (field, first), *others = faults
    more = "".join(f"; {path}: {what}" for path, what in others[: _TOLD - 1])
    left = len(faults) - _TOLD
    raise invalid(field, f"{first}{more}" + (f"; and {left} more" if left > 0 else ""))


def _nothing_unknown(at: str, message: Message) -> None:
    unknown = UnknownFieldSet(message)
    if len(unknown):
        raise invalid(at, f"has a field {unknown[0].field_number} that is not known here")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for i, inner in enumerate(value if field.is_repeated else [value]):
            index = f"[{i}]" if field.is_repeated else ""
            _nothing_unknown(f"{at}.{field.name}{index}", inner)
