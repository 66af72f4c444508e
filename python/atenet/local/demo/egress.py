"""The promises of the demo about what leaves an actor. Each returns what it saw, or fails with what it saw instead."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from atenet.cli.policy_denials import recent_denials
from atenet.denials.suggest import suggest
from atenet.local.demo.origins import API, DENIED, PINNED, PLAIN, RAW_PORT
from atenet.local.demo.report import require
from atenet.local.demo.software import ATESPACE
from atenet.local.demo.world import World
from atenet.proto import ateapi_pb2 as pb

__all__ = ["CHECKS", "PROBER", "SECRET", "policy"]

PROBER = "prober"
# What the credential provider keeps, and the file that it keeps it in.
SECRET, _SECRET_FILE = "the-demo-token", "token"
_PLACEHOLDER = "Bearer placeholder"
# What the actor dials where it picks an address itself: it plays no part, so it may be anybody's.
_ADDRESS = "203.0.113.9"
_NXDOMAIN = 3
# How long a new policy may take to reach the relay in the sandbox.
_FRESH_SECONDS = 10.0


def policy() -> pb.EgressPolicy:
    """An http, an https and a tls_passthrough rule; the second one injects a credential."""
    found = pb.EgressPolicy()
    found.rules.add().http.hostnames.append(PLAIN)
    opened = found.rules.add().https
    opened.hostnames.append(API)
    opened.effects.replace_headers.add(
        header="authorization",
        prefix="Bearer ",
        credential_uri=f"ate-secret://local.ate/file/{_SECRET_FILE}",
    )
    passed = found.rules.add().tls_passthrough
    passed.hostnames.append(PINNED)
    passed.ports.numbers.append(443)
    return found


def no_policy(world: World) -> str:
    """Without a policy: no name, no request, no TLS."""
    name = _probe(world, "resolve", name=PLAIN)
    web = _probe(world, "at", address=_at(80), host=PLAIN)
    tls = _probe(world, "at", address=_at(443), host=API, server_name=API)
    seen = f"name: code {name.get('code')}; http: {_outcome(web)}; https: {_outcome(tls)}"
    refused = (name.get("code"), web.get("reason")) == (_NXDOMAIN, "no-egress-policy")
    require(refused and "error" in tls and not world.origins.requests, seen)
    return f"names do not exist, http {web['status']} {web['reason']}, TLS refused by alert"


def http_rule(world: World) -> str:
    """The policy is set; a cleartext request passes as soon as the sandbox knows."""
    secrets = world.system.layout.secrets / ATESPACE
    secrets.mkdir(mode=0o700, exist_ok=True)
    (secrets / _SECRET_FILE).write_text(f"{SECRET}\n")
    world.set_policy(PROBER, policy())
    began = time.monotonic()
    _until(lambda: _probe(world, "resolve", name=PLAIN).get("code") == 0)
    answer = _probe(world, "fetch", url=f"http://{PLAIN}/")
    _expect(answer, 200)
    require(world.origins.requests[-1][0] == PLAIN, f"Host {world.origins.requests[-1][0]}")
    return f"200 from {PLAIN}, {time.monotonic() - began:.1f} s after the policy was set"


def credential(world: World) -> str:
    """The origin gets the credential, the actor never has it."""
    headers = {"Authorization": _PLACEHOLDER}
    answer = _probe(world, "fetch", url=f"https://{API}/", headers=headers)
    _expect(answer, 200)
    got = world.origins.requests[-1][1].get("authorization")
    told = json.loads(answer["body"])["authorization_sha256"]
    require(got == f"Bearer {SECRET}", "the origin got another credential")
    require(told == hashlib.sha256(f"Bearer {SECRET}".encode()).hexdigest(), "another digest")
    knows = json.dumps(_probe(world, "look", variables=["SSL_CERT_FILE"]))
    require(SECRET not in knows + json.dumps(answer), "the actor has seen the secret")
    return "the origin got the secret, the actor sent a placeholder and saw a digest"


def passthrough(world: World) -> str:
    """Nobody opens it: the actor sees the origin's own certificate."""
    own, opened = (_probe(world, "certificate", host=name) for name in (PINNED, API))
    seen = (
        f"{PINNED} {_print(own)}, {API} {_print(opened)}, the origin's {world.origins.pinned[:12]}"
    )
    require(own.get("sha256") == world.origins.pinned != opened.get("sha256"), seen)
    return f"{PINNED} shows the origin's own ({world.origins.pinned[:12]}), {API} another"


def denied_name(world: World) -> str:
    """A host without a rule."""
    answer = _probe(world, "at", address=_at(80), host=DENIED)
    _expect(answer, 403, "no-egress-rule")
    return f"403 {answer['reason']}: {answer['body'].strip()}"


def raw_tcp(world: World) -> str:
    """What is neither HTTP nor TLS is closed, and nothing is dialled."""
    told = _probe(world, "dial", address=_at(RAW_PORT), say="SSH-2.0-demo\r\n")
    reached = world.origins.raw_connections
    # The native gateway resets it, Envoy ends it (docs/envoy.md).
    closed = "error" in told or told.get("received") == ""
    require(closed and reached == 0, f"{_outcome(told)}, {reached} connections arrived")
    return f"{told.get('error', 'ended without a word')}, no connection arrived"


def denied_question(world: World) -> str:
    """A name that no rule covers does not exist, and is asked of nobody."""
    name = f"c2VjcmV0LWRhdGE.{DENIED}"
    told = _probe(world, "resolve", name=name)
    asked = [each for each in world.origins.questions if each.endswith(DENIED)]
    require(
        told.get("code") == _NXDOMAIN and not asked, f"{_outcome(told)}, asked outside: {asked}"
    )
    return "NXDOMAIN, no question left the sandbox"


def fronting(world: World) -> str:
    """An allowed server name does not carry a request for another host."""
    before = len(world.origins.requests)
    there = _at(443)
    other = _probe(world, "at", address=there, server_name=API, host=DENIED)
    pinned = _probe(world, "at", address=there, server_name=API, host=PINNED)
    _expect(other, 403, "no-egress-rule")
    _expect(pinned, 403, "egress-not-intercepted")
    require(len(world.origins.requests) == before, "a request arrived")
    return f"403 {other['reason']}, 403 {pinned['reason']}, no request arrived"


def denials(world: World) -> str:
    """What was denied can be asked for, and a rule is proposed for it."""
    found = recent_denials(world.system.layout.home, f"{ATESPACE}/{PROBER}")
    reasons = {denial.reason for denial in found}
    expected = {"name-denied", "no-egress-rule", "unknown-protocol"}
    require(expected <= reasons, f"reasons {sorted(reasons)}")
    proposed = suggest(policy(), found)
    added = [f"{each.kind} {each.host}:{each.port}" for each in proposed.added]
    require(f"http {DENIED}:80" in added, f"proposed {added}")
    world.suspend(PROBER)  # the checks that follow need its slot
    return f"{len(found)} remembered; proposed: {', '.join(added)}"


CHECKS: tuple[tuple[str, Callable[[World], str]], ...] = (
    ("without a policy an actor reaches nothing", no_policy),
    ("an http rule", http_rule),
    ("an https rule with a credential", credential),
    ("a tls_passthrough rule", passthrough),
    ("a denied name", denied_name),
    ("a raw TCP connection", raw_tcp),
    ("a question for a denied name", denied_question),
    ("another host behind an allowed name", fronting),
    ("denials are told, a rule is proposed", denials),
)


def _probe(world: World, what: str, **arguments: Any) -> dict[str, Any]:
    """Has the actor do something, and returns what it saw: `error` and `text` when it failed."""
    body = json.dumps({"do": what, **arguments}).encode()
    fields = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    answer = world.request(PROBER, method="POST", headers=fields, body=body)
    require(answer.status == 200, f"the prober answered {answer.status}: {answer.body[:200]!r}")
    told: dict[str, Any] = json.loads(answer.body)
    return told


def _at(port: int) -> str:
    return f"{_ADDRESS}:{port}"


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _FRESH_SECONDS
    while not holds():
        require(time.monotonic() < deadline, "the policy did not reach the sandbox")
        time.sleep(0.1)  # noqa: TID251 - the sandbox tells nobody when it has heard


def _expect(told: dict[str, Any], status: int, reason: str | None = None) -> None:
    found = (told.get("status"), told.get("reason"))
    require(found[0] == status and reason in (None, found[1]), _outcome(told))


def _outcome(told: dict[str, Any]) -> str:
    if "error" in told:
        return f"{told['error']} {told['text']}"
    return " ".join(
        str(told[key]) for key in ("status", "reason", "code") if told.get(key) is not None
    )


def _print(told: dict[str, Any]) -> str:
    return str(told.get("sha256") or _outcome(told))[:12]
