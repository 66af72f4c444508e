"""Egress policies of many rules, and what a decision among them costs."""

from __future__ import annotations

from functools import cache

from atenet._engine import EgressPolicy
from atenet.proto import ateapi_pb2 as pb

__all__ = ["decision_microseconds"]

_DECISIONS = 400_000


def decision_microseconds(rules: int, of: int | None = None) -> float:
    """The mean over names that an exact rule, a `*.` rule or no rule covers, a third each.

    `of`: take the names of the first so many rules only.
    """
    names = [name for at in range(of or rules) for name in _names(at)]
    rounds = max(1, _DECISIONS // len(names))
    return _compiled(rules).decision_seconds("tls", names, 443, rounds) * 1e6


def _names(at: int) -> tuple[str, str, str]:
    kind = "exact" if at % 2 else "wide"
    return f"api.{kind}-{at}.example.com", f"any.wide-{at}.example.com", f"no.such-{at}.example.net"


@cache
def _compiled(rules: int) -> EgressPolicy:
    """Half exact names, half suffixes; every tenth with a credential."""
    policy = pb.EgressPolicy()
    for at in range(rules):
        rule = policy.rules.add().https
        rule.hostnames.append(
            f"api.exact-{at}.example.com" if at % 2 else f"*.wide-{at}.example.com"
        )
        if at % 10 == 0:
            uri = f"ate-secret://files.example/main/key-{at}"
            rule.effects.replace_headers.add(header="authorization", credential_uri=uri)
    return EgressPolicy.compile(policy.SerializeToString())
