"""Rules that would let recorded denials through, and nothing beside them. Pure; the engine's matcher decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from atenet._engine import EgressPolicy, validate_egress_policy
from atenet.denials.denial import Denial
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Added", "Left", "Suggestion", "suggest"]

_DEFAULTS = {"http": 80, "https": 443}
# What the contract allows in one rule.
_MOST_HOSTS, _MOST_PORTS = 256, 16
_BY_RULE = frozenset({"no-egress-policy", "no-egress-rule", "egress-port-denied", "name-denied"})
_ADDRESS = "no rule can name an address; only `*` covers it, and everything else with it"
_NO_NAME = "it named no host"
_PATTERN = "it is no name of one host"


@dataclass(frozen=True)
class Added:
    """A host and a port that the suggestion opens; `guessed`: only the name was ever asked for."""

    kind: str
    host: str
    port: int
    guessed: bool = False


@dataclass(frozen=True)
class Left:
    """A denial that no rule is suggested for, and why."""

    denial: Denial
    why: str


@dataclass
class Suggestion:
    """`policy`: the actor's, with what was added."""

    policy: pb.EgressPolicy
    added: list[Added] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


def suggest(policy: pb.EgressPolicy, denials: Iterable[Denial]) -> Suggestion:
    """What the policy denies now and what was denied before; what it lets through by now is not news."""
    found = Suggestion(pb.EgressPolicy())
    found.policy.CopyFrom(policy)
    matcher = EgressPolicy.compile(policy.SerializeToString())
    names_seen = {denial.host for denial in denials if denial.kind is not None}
    for denial in denials:
        if denial.reason not in _BY_RULE:
            found.left.append(Left(denial, denial.detail))
            continue
        why = _unfit(denial)
        if why is not None:
            found.left.append(Left(denial, why))
            continue
        if denial.kind is None and denial.host in names_seen:
            continue  # what it was wanted for is known
        added = _of(denial)
        layer = "http" if added.kind == "http" else "tls"
        if added not in found.added and not matcher.decide(layer, added.host, added.port).allowed:
            found.added.append(added)
    found.added.sort(key=lambda each: (each.kind, each.port, each.host))
    for kind, hosts, ports in _grouped(found.added):
        _merge(found.policy, kind, hosts, ports)
    return found


def _unfit(denial: Denial) -> str | None:
    if not denial.host:
        return _NO_NAME
    last = denial.host.rpartition(".")[2]
    if "[" in denial.host or last.isdigit():
        return _ADDRESS
    return None if _names_one(denial.host) else _PATTERN


def _names_one(host: str) -> bool:
    """Whoever tells of denials may have been taken over: `*` would open everything, and what is no name
    would spoil the whole policy."""
    rule = pb.EgressRule(https=pb.HTTPSRule(hostnames=[host]))
    policy = pb.EgressPolicy(rules=[rule]).SerializeToString()
    return "*" not in host and not validate_egress_policy(policy)


def _of(denial: Denial) -> Added:
    host = str(denial.host)
    if denial.kind is None or denial.port is None:
        return Added("https", host, _DEFAULTS["https"], guessed=True)
    return Added("http" if denial.kind == "http" else "https", host, denial.port)


def _grouped(added: Sequence[Added]) -> list[tuple[str, list[str], tuple[int, ...]]]:
    """Hosts of one kind that want the same ports share a rule: together they open nothing that was not asked for."""
    ports: dict[tuple[str, str], set[int]] = {}
    for each in added:
        ports.setdefault((each.kind, each.host), set()).add(each.port)
    hosts: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (kind, host), wanted in ports.items():
        ordered = sorted(wanted)
        for at in range(0, len(ordered), _MOST_PORTS):
            hosts.setdefault((kind, tuple(ordered[at : at + _MOST_PORTS])), []).append(host)
    return [(kind, named, wanted) for (kind, wanted), named in hosts.items()]


def _merge(policy: pb.EgressPolicy, kind: str, hosts: list[str], ports: tuple[int, ...]) -> None:
    """Into a rule for just these ports that replaces nothing, else into rules of their own."""
    rest = list(hosts)
    for rule in policy.rules:
        if rule.HasField(kind):
            body = getattr(rule, kind)
            if _ports(kind, body) == ports and not body.effects.replace_headers:
                room = _MOST_HOSTS - len(body.hostnames)
                body.hostnames.extend(rest[:room])
                rest = rest[room:]
    while rest:
        body = getattr(policy.rules.add(), kind)
        body.hostnames.extend(rest[:_MOST_HOSTS])
        rest = rest[_MOST_HOSTS:]
        if ports != (_DEFAULTS[kind],):
            body.ports.numbers.extend(ports)


def _ports(kind: str, body: pb.HTTPRule | pb.HTTPSRule) -> tuple[int, ...]:
    """Of a rule; empty: all of them."""
    if not body.HasField("ports"):
        return (_DEFAULTS[kind],)
    return tuple(sorted(body.ports.numbers))
