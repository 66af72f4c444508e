"""Egress policies as callers may write them.

What is unknown is refused here, unlike elsewhere: a field that a newer client sets may narrow a
rule, and a rule without it would then let more through than its author meant.
"""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from atenet.ateapi.failure import invalid
from atenet.ateapi.validate import egress_effects, egress_names, fields
from atenet.proto import ateapi_pb2 as pb

__all__ = ["for_create", "for_update"]

_AT = "egress_policy"
_NAME = "default"
_MAX_RULES = 256
_MAX_HOSTNAMES = 256
_MAX_PORTS = 16
_HTTP, _HTTPS, _PASSTHROUGH = "http", "https", "tls_passthrough"
_KINDS = (_HTTP, _HTTPS, _PASSTHROUGH)
_DEFAULT_PORT = {_HTTP: 80, _HTTPS: 443}
_ALL = 0

_Key = tuple[bool, str, int]
"""Whether it decides about TLS, the pattern, the port (0: all): what may stand in one rule only."""


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
    _nothing_unknown(_AT, policy)
    if len(policy.rules) > _MAX_RULES:
        raise invalid(f"{_AT}.rules", f"has {len(policy.rules)} rules; at most {_MAX_RULES}")
    seen: dict[_Key, str] = {}
    for i, rule in enumerate(policy.rules):
        _rule(f"{_AT}.rules[{i}]", rule, seen)


def _rule(at: str, rule: pb.EgressRule, seen: dict[_Key, str]) -> None:
    kinds = [kind for kind in _KINDS if rule.HasField(kind)]
    if len(kinds) != 1:
        raise invalid(at, f"set exactly one of {', '.join(_KINDS)}")
    (kind,) = kinds
    at, body = f"{at}.{kind}", getattr(rule, kind)
    ports = _ports(f"{at}.ports", body, kind)
    if not 1 <= len(body.hostnames) <= _MAX_HOSTNAMES:
        raise invalid(f"{at}.hostnames", f"needs between 1 and {_MAX_HOSTNAMES} patterns")
    for i, pattern in enumerate(body.hostnames):
        here = f"{at}.hostnames[{i}]"
        egress_names.pattern(here, pattern)
        for port in ports:
            # A cleartext request and a TLS one are told apart before any name is looked at.
            before = seen.setdefault((kind != _HTTP, pattern, port), here)
            if before != here:
                where = "all ports" if port == _ALL else f"port {port}"
                raise invalid(here, f"{pattern!r} on {where} is also {before}")
    if kind != _PASSTHROUGH:
        egress_effects.replace_headers(f"{at}.effects.replace_headers", body.effects)


def _ports(at: str, body: Message, kind: str) -> list[int]:
    """The rule's ports with its kind's default filled in; 0 stands for all."""
    if not body.HasField("ports"):
        if kind not in _DEFAULT_PORT:
            raise invalid(at, "is required")
        return [_DEFAULT_PORT[kind]]
    ports: pb.Ports = body.ports  # type: ignore[attr-defined]
    if ports.HasField("all") == bool(ports.numbers):
        raise invalid(at, "set exactly one of all and numbers")
    if ports.HasField("all"):
        return [_ALL]
    if len(ports.numbers) > _MAX_PORTS:
        raise invalid(f"{at}.numbers", f"has {len(ports.numbers)} ports; at most {_MAX_PORTS}")
    for i, number in enumerate(ports.numbers):
        fields.port(f"{at}.numbers[{i}]", number)
        if number in ports.numbers[:i]:
            raise invalid(f"{at}.numbers[{i}]", f"{number} is there twice")
    return list(ports.numbers)


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
