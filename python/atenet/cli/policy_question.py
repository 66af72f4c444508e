"""What an actor's egress policy says of a URL, in words. Pure; the engine's matcher decides."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from atenet._engine import EgressDecision, EgressPolicy
from atenet.cli.failure import BadInput
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Answer", "explain"]

_PORTS = {"http": 80, "https": 443}
_WHY = {
    "no-egress-policy": "the actor has no egress policy, or one without rules: nothing may leave",
    "no-egress-rule": "no {kind} rule covers {host}",
    "egress-port-denied": "{kind} rules cover {host}, but none of them port {port}",
}
_HOW = {
    "http": "forwarded, request by request",
    "https": "intercepted: the actor sees a certificate of the gateway's, requests are decided one by one",
    "tls_passthrough": "passed through untouched: the actor sees the host's own certificate",
}


@dataclass(frozen=True)
class Answer:
    """`rule`: its place in the policy, from 0; none: denied."""

    allowed: bool
    host: str
    port: int
    rule: int | None
    rule_kind: str | None
    reason: str | None
    text: str

    def data(self) -> dict[str, object]:
        """For programs."""
        return {
            "allowed": self.allowed,
            "host": self.host,
            "port": self.port,
            "rule": self.rule,
            "ruleKind": self.rule_kind,
            "reason": self.reason,
            "text": self.text,
        }


def explain(policy: pb.EgressPolicy, url: str) -> Answer:
    """What would happen to a request for `url` (http or https). Raises BadInput for what is no such URL."""
    scheme, host, port = _parts(url)
    kind = {"http": "http", "https": "tls"}[scheme]
    decision = EgressPolicy.compile(policy.SerializeToString()).decide(kind, host, port)
    if decision.host is None:
        raise BadInput(f"{url}: the host {(decision.problem or '').removeprefix('name: ')}")
    return Answer(
        allowed=decision.allowed,
        host=decision.host,
        port=port,
        rule=decision.rule,
        rule_kind=decision.rule_kind,
        reason=decision.reason,
        text=_text(decision, scheme, port),
    )


def _parts(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url if "://" in url else f"https://{url}")
    if parts.scheme not in _PORTS:
        raise BadInput(f"{url}: only http and https can leave an actor, not {parts.scheme}")
    authority = parts.netloc.rpartition("@")[2]
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise BadInput(f"{url}: the port must be from 1 to 65535") from None
    if parts.port is not None or authority.endswith(":"):
        authority = authority.rpartition(":")[0]
    return parts.scheme, authority, port


def _text(decision: EgressDecision, scheme: str, port: int) -> str:
    kind = "http" if scheme == "http" else "https or tls_passthrough"
    if not decision.allowed:
        why = _WHY[decision.reason or ""]
        return why.format(kind=kind, host=decision.host, port=port)
    rule_kind = decision.rule_kind or ""
    text = f"rules[{decision.rule}].{rule_kind}: {_HOW[rule_kind]}"
    if decision.replaces:
        text += f"; replaced where the request has them: {', '.join(decision.replaces)}"
    if decision.problem:
        text += f"; every request fails: {decision.problem}"
    return text
