"""The engine's egress policies as Python sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from atenet._engine import EgressPolicy, normal_host, validate_egress_policy
from atenet.proto import ateapi_pb2 as pb
from google.protobuf.json_format import ParseDict

NAMES = json.loads((Path(__file__).parents[1] / "conformance" / "names.json").read_text())


def policy(*rules: dict[str, Any]) -> bytes:
    return ParseDict({"rules": list(rules)}, pb.EgressPolicy()).SerializeToString()


def https(*hostnames: str, **more: Any) -> dict[str, Any]:
    return {"https": {"hostnames": list(hostnames), **more}}


@pytest.mark.parametrize("row", NAMES, ids=lambda row: ascii(row["written"])[:40])
def test_each_spelling_is_read_as_the_name_table_says(row: dict[str, str | None]) -> None:
    written, means = row["written"], row["means"]
    assert written is not None
    compiled = EgressPolicy.compile(policy(https("*")))
    decision = compiled.decide("tls", written, 443)
    assert (decision.allowed, decision.host) == (means is not None, means)
    if means is None:
        assert decision.reason == "bad-host"
        assert decision.problem
        with pytest.raises(ValueError, match="must"):
            normal_host(written)
    else:
        assert normal_host(written) == means


def test_a_policy_that_the_contract_allows_has_no_faults() -> None:
    header = {"header": "Authorization", "prefix": "Bearer ", "credentialUri": "ate-secret://a/b/c"}
    good = policy(
        {"http": {"hostnames": ["a.example", "*"]}},
        https("*.a.example", effects={"replaceHeaders": [header]}),
        {"tlsPassthrough": {"hostnames": ["b.example"], "ports": {"all": {}}}},
    )
    assert validate_egress_policy(good) == []
    assert validate_egress_policy(b"") == []


def test_each_fault_comes_with_its_field() -> None:
    bad = policy(https("a.example"), {}, https("a.example", "B.example", ports={"numbers": [0]}))
    assert validate_egress_policy(bad) == [
        ("egress_policy.rules[1]", "must have exactly one of http, https and tls_passthrough"),
        ("egress_policy.rules[2].https.ports.numbers[0]", "must be from 1 to 65535, not 0"),
        ("egress_policy.rules[2].https.hostnames[1]", "must be in lower case"),
    ]


def test_bytes_that_are_no_policy_are_an_error() -> None:
    for call in (validate_egress_policy, EgressPolicy.compile):
        with pytest.raises(ValueError, match="policy: is no serialised"):
            call(b"\xff\xff\xff")


def test_a_decision_names_its_rule_or_its_reason() -> None:
    header = {"header": "X-Key", "credentialUri": "ate-secret://a/b/c"}
    compiled = EgressPolicy.compile(
        policy(
            {"http": {"hostnames": ["*"]}},
            https("api.example.com", effects={"replaceHeaders": [header]}),
            {"tlsPassthrough": {"hostnames": ["pinned.example.com"], "ports": {"numbers": [443]}}},
        )
    )
    allowed = compiled.decide("tls", "API.Example.com.", 443)
    assert (allowed.allowed, allowed.rule, allowed.rule_kind) == (True, 1, "https")
    assert (allowed.host, allowed.replaces) == ("api.example.com", ["x-key"])
    assert compiled.decide("tls", "pinned.example.com", 443).rule_kind == "tls_passthrough"
    assert compiled.decide("tls", "other.example.com", 443).reason == "no-egress-rule"
    assert compiled.decide("tls", "api.example.com", 8443).reason == "egress-port-denied"
    assert compiled.decide("http", "other.example.com", 80).rule == 0
    assert EgressPolicy.compile(b"").decide("tls", "a.example", 443).reason == "no-egress-policy"
    assert compiled.covers("anything.example")
    with pytest.raises(ValueError, match="kind: must be http or tls"):
        compiled.decide("udp", "a.example", 53)
    with pytest.raises(OverflowError):
        compiled.decide("tls", "a.example", 65536)


def test_a_faulty_effect_is_told_with_the_decision() -> None:
    header = {"header": "host", "credentialUri": "ate-secret://a/b/c"}
    faulty = policy(https("a.example", effects={"replaceHeaders": [header]}))
    decision = EgressPolicy.compile(faulty).decide("tls", "a.example", 443)
    assert decision.problem
    assert decision.problem.startswith("effects.replace_headers[0]: header")


def test_the_cost_of_a_decision_can_be_measured() -> None:
    compiled = EgressPolicy.compile(policy(https("a.example")))
    assert compiled.decision_seconds("tls", ["a.example", "b.example"], 443, 10) > 0
    with pytest.raises(ValueError, match="names"):
        compiled.decision_seconds("tls", [], 443, 1)
