"""Rules proposed from denials: they let through what was denied, and nothing beside it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from atenet._engine import EgressPolicy
from atenet.cli.policy_denials import yaml_text
from atenet.cli.policy_file import parse_policy
from atenet.denials.denial import Denial
from atenet.denials.suggest import suggest
from atenet.proto import ateapi_pb2 as pb

from tests.support.egress_policies import header, headers, http, https, on, passthrough, policy

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def denial(
    host: str | None, port: int | None = 443, kind: str | None = "tls", **more: Any
) -> Denial:
    given: dict[str, Any] = {"reason": "no-egress-rule", "detail": "why", "rule": None, **more}
    return Denial(first=NOW, last=NOW, times=1, kind=kind, host=host, port=port, **given)


def rules(proposed: pb.EgressPolicy) -> list[pb.EgressRule]:
    return list(proposed.rules)


def test_each_kind_gets_its_rule_and_the_usual_port_is_not_said() -> None:
    found = suggest(policy(), [denial("a.example"), denial("b.example", 80, "http")])
    assert rules(found.policy) == [http("b.example"), https("a.example")]


def test_hosts_that_want_the_same_ports_share_a_rule() -> None:
    seen = [denial(h, p) for h in ("b.example", "a.example") for p in (443, 8443)]
    found = suggest(policy(), [*seen, denial("c.example")])
    assert rules(found.policy) == [
        https("a.example", "b.example", ports=on(443, 8443)),
        https("c.example"),
    ]


def test_what_is_added_joins_a_rule_for_just_these_ports_that_replaces_nothing() -> None:
    replacing = https("api.example", effects=headers(header()))
    before = policy(replacing, https("old.example"), https("odd.example", ports=on(8443)))
    found = suggest(before, [denial("new.example")])
    assert rules(found.policy) == [
        replacing,
        https("old.example", "new.example"),
        https("odd.example", ports=on(8443)),
    ]


def test_nothing_but_what_was_denied_is_let_through() -> None:
    before = policy(passthrough("pinned.example", ports=on(443)))
    seen = [denial("a.example", 8443), denial("b.example"), denial("c.example", 8080, "http")]
    found = suggest(before, seen)
    old = EgressPolicy.compile(before.SerializeToString())
    new = EgressPolicy.compile(found.policy.SerializeToString())
    asked = {(d.kind, d.host, d.port) for d in seen}
    for kind in ("http", "tls"):
        for host in ("a.example", "b.example", "c.example", "x.a.example", "pinned.example"):
            for port in (80, 443, 8080, 8443):
                expected = (kind, host, port) in asked or old.decide(kind, host, port).allowed
                assert new.decide(kind, host, port).allowed == expected, (kind, host, port)


def test_what_passes_by_now_is_not_proposed() -> None:
    before = policy(https("a.example"))
    assert suggest(before, [denial("a.example")]).added == []


def test_a_name_that_was_only_asked_for_is_a_guess_unless_it_was_dialled_too() -> None:
    named = denial("a.example", None, None)
    found = suggest(policy(), [named])
    assert rules(found.policy) == [https("a.example")]
    assert found.added[0].guessed
    found = suggest(policy(), [named, denial("a.example", 80, "http")])
    assert rules(found.policy) == [http("a.example")]


@pytest.mark.parametrize(
    "seen",
    [
        denial("192.0.2.1", 80, "http"),
        denial("[2001:db8::1]", 80, "http"),
        denial(None, 22, None, reason="unknown-protocol"),
        denial("a.example", reason="address-denied"),
        denial("a.example", reason="upgrade-denied"),
        denial(None, 443, "tls", reason="no-server-name"),
    ],
)
def test_what_no_rule_can_help_is_left_with_its_reason(seen: Denial) -> None:
    found = suggest(policy(), [seen])
    assert found.added == []
    assert [left.denial for left in found.left] == [seen]
    assert rules(found.policy) == []


def test_more_than_one_rule_can_hold_becomes_several() -> None:
    many = [denial(f"h{number}.example") for number in range(300)]
    ports = [denial("many.example", 1000 + number) for number in range(20)]
    found = suggest(policy(), [*many, *ports])
    assert list(parse_policy(yaml_text(found), "x").rules) == list(found.policy.rules)
    assert sum(len(rule.https.hostnames) for rule in found.policy.rules) == 302


def test_the_text_is_a_policy_file_with_its_story() -> None:
    before = policy(https("old.example", effects=headers(header("x-key"))))
    found = suggest(
        before, [denial("a.example"), denial("192.0.2.1"), denial("n.example", None, None)]
    )
    text = yaml_text(found)
    read = parse_policy(text, "x")
    assert list(read.rules) == list(found.policy.rules)
    assert "#   https a.example port 443\n" in text
    assert (
        "#   https n.example port 443 (only its name was asked for: the port is a guess)\n" in text
    )
    assert "#   192.0.2.1: no rule can name an address" in text


def test_without_denials_there_is_nothing_to_add() -> None:
    found = suggest(policy(https("a.example")), [])
    assert yaml_text(found).startswith("# Nothing to add.\n")


@pytest.mark.parametrize("host", ["*", "*.example", "a b", "A.EXAMPLE", "x" * 300, "a\nrules: b"])
def test_what_is_no_name_of_one_host_opens_nothing_and_spoils_nothing(host: str) -> None:
    found = suggest(policy(), [denial(host), denial("a.example")])
    assert rules(found.policy) == [https("a.example")]
    assert [each.why for each in found.left] == ["it is no name of one host"]
