"""Egress policies in few words."""

from __future__ import annotations

from typing import Any

from atenet.proto import ateapi_pb2 as pb

ALL = pb.Ports(all=pb.AllPorts())


def policy(*rules: pb.EgressRule, uid: str = "", version: int = 0) -> pb.EgressPolicy:
    """The policy of an actor in team-a."""
    meta = pb.ResourceMetadata(atespace="team-a", name="default", uid=uid, version=version)
    return pb.EgressPolicy(metadata=meta, rules=rules)


def http(*hostnames: str, **more: Any) -> pb.EgressRule:
    return pb.EgressRule(http=pb.HTTPRule(hostnames=hostnames, **more))


def https(*hostnames: str, **more: Any) -> pb.EgressRule:
    return pb.EgressRule(https=pb.HTTPSRule(hostnames=hostnames, **more))


def passthrough(*hostnames: str, **more: Any) -> pb.EgressRule:
    return pb.EgressRule(tls_passthrough=pb.TLSPassthroughRule(hostnames=hostnames, **more))


def on(*numbers: int) -> pb.Ports:
    return pb.Ports(numbers=numbers)


def headers(*given: pb.CredentialHeader) -> pb.HttpRuleEffects:
    return pb.HttpRuleEffects(replace_headers=given)


def header(name: str = "authorization", uri: str = "", **more: Any) -> pb.CredentialHeader:
    """Replaced by a credential; `uri` is filled in where no other source is given."""
    if not uri and "actor_jwt" not in more:
        uri = "ate-secret://vault.example/main/token"
    return pb.CredentialHeader(header=name, credential_uri=uri, **more)
