"""The rules of egress policies: what is taken, and what is refused by its path."""

from __future__ import annotations

import grpc
import pytest
from atenet.ateapi.failure import CallError
from atenet.ateapi.validate import egress_policy
from atenet.proto import ateapi_pb2 as pb

from tests.support.egress_policies import (
    ALL,
    header,
    headers,
    http,
    https,
    on,
    passthrough,
    policy,
)

_LONG = ".".join(["a" * 63] * 4)  # 255 characters


def _refused(given: pb.EgressPolicy) -> str:
    """The path that the refusal names, without the policy's own."""
    with pytest.raises(CallError) as caught:
        egress_policy.for_create(given, "team-a")
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    return caught.value.message.split(": ")[0].removeprefix("egress_policy.")


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [http("*"), https("*"), passthrough("*.a.example", ports=on(8443))],
        [http("a.example", "*.a.example", "*", "localhost", "xn--bcher-kva.example")],
        [http("a.example", ports=on(80, 8080)), http("a.example", ports=ALL)],
        [http("a.example", ports=on(443)), https("a.example")],
        [https("a.example"), passthrough("a.example", ports=on(8443))],
        [http("1.example", "a-b.3com", "0x.example")],
        [https("a.example", effects=headers(header(), header("x-api-key", prefix="Bearer ")))],
        [
            https(
                "a.example",
                effects=headers(
                    header(actor_jwt=pb.ActorJWTSource(audiences=["a"], expiration_seconds=300))
                ),
            )
        ],
        [http(*(f"h{i}.example" for i in range(256)))],
        [http(f"h{i}.example") for i in range(256)],
    ],
)
def test_good_rules_are_taken_as_they_are(rules: list[pb.EgressRule]) -> None:
    made = egress_policy.for_create(policy(*rules), "team-a")
    assert list(made.rules) == rules


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "A.example", "a.example.", ".a.example", "a..example", "*a.example", "a.*.example"),
        *("*.", "**", "*.*.example", "http://a.example", "a.example/", "a.example:80", "a b"),
        *("a_b.example", "-a.example", "a-.example", "bücher.example", "a\u3002example"),
        *("10.0.0.1", "127.1", "0x7f000001", "0x7f.0.0.0x1", "2130706433", "*.1", "[::1]", "::1"),
        *("a@b.example", "a%2eexample", "a.example\n", "a.example\0", f"{'a' * 64}.example", _LONG),
    ],
)
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    assert _refused(policy(http("ok.example", pattern))) == "rules[0].http.hostnames[1]"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (pb.EgressRule(), ""),
        (pb.EgressRule(http=http("a").http, https=https("a").https), ""),
        (http(), ".http.hostnames"),
        (http(*(f"h{i}.example" for i in range(257))), ".http.hostnames"),
        (passthrough("a.example"), ".tls_passthrough.ports"),
        (http("a.example", ports=pb.Ports()), ".http.ports"),
        (http("a.example", ports=pb.Ports(all=pb.AllPorts(), numbers=[1])), ".http.ports"),
        (http("a.example", ports=on(*range(1, 18))), ".http.ports.numbers"),
        (http("a.example", ports=on(80, 0)), ".http.ports.numbers[1]"),
        (http("a.example", ports=on(65536)), ".http.ports.numbers[0]"),
        (http("a.example", ports=on(80, 81, 80)), ".http.ports.numbers[2]"),
    ],
)
def test_a_bad_rule_is_refused_by_its_path(rule: pb.EgressRule, path: str) -> None:
    assert _refused(policy(http("first.example"), rule)) == f"rules[1]{path}"


def test_a_policy_is_no_larger_than_gateways_can_read() -> None:
    hostnames = [f"{i:03}.{'a' * 60}.{'b' * 60}.example" for i in range(256)]
    assert (
        _refused(policy(*(http(*hostnames, ports=on(p)) for p in range(1, 101)))) == "egress_policy"
    )


def test_several_faults_are_told_at_once() -> None:
    bad = policy(http("A.example"), *(pb.EgressRule() for _ in range(9)))
    with pytest.raises(CallError) as caught:
        egress_policy.for_create(bad, "team-a")
    message = caught.value.message
    assert message.startswith("egress_policy.rules[0].http.hostnames[0]: must be in lower case; ")
    assert "egress_policy.rules[4]: " in message
    assert "egress_policy.rules[5]: " not in message
    assert message.endswith("; and 5 more")


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ([http("a.example", "a.example")], "rules[0].http.hostnames[1]"),
        ([http("a.example"), http("a.example", ports=on(80))], "rules[1].http.hostnames[0]"),
        ([https("*"), https("b.example", "*", ports=on(8443, 443))], "rules[1].https.hostnames[1]"),
        (
            [https("a.example"), passthrough("a.example", ports=on(443))],
            "rules[1].tls_passthrough.hostnames[0]",
        ),
        (
            [http("a.example", ports=ALL), http("a.example", ports=ALL)],
            "rules[1].http.hostnames[0]",
        ),
    ],
)
def test_the_same_pattern_on_the_same_port_twice_is_refused(
    rules: list[pb.EgressRule], path: str
) -> None:
    assert _refused(policy(*rules)) == path


@pytest.mark.parametrize(
    "name",
    [
        *("", "a b", "a:b", ":authority", "a\r\nb", "a" * 129, "Host", "CONTENT-LENGTH", "te"),
        *("transfer-encoding", "connection", "keep-alive", "upgrade", "trailer", "expect"),
        *("proxy-authorization", "x-ate-actor", "ate-target-actor", "http2-settings"),
    ],
)
def test_a_header_that_the_proxies_rely_on_is_not_replaced(name: str) -> None:
    rule = https("a.example", effects=headers(header("x-a"), header(name)))
    assert _refused(policy(rule)) == "rules[0].https.effects.replace_headers[1].header"


_JWT = pb.ActorJWTSource(audiences=["a"], expiration_seconds=600)


def _jwt(*audiences: str, seconds: int = 600) -> pb.CredentialHeader:
    source = pb.ActorJWTSource(audiences=audiences, expiration_seconds=seconds)
    return header(actor_jwt=source)


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (pb.CredentialHeader(header="a"), ""),
        (header("a", "ate-secret://v/m/t", actor_jwt=_JWT), ""),
        (header("a", prefix="a\nb"), ".prefix"),
        (header("a", prefix="é"), ".prefix"),
        (_jwt(), ".actor_jwt.audiences"),
        (_jwt(*map(str, range(17))), ".actor_jwt.audiences"),
        (_jwt("a", ""), ".actor_jwt.audiences[1]"),
        (_jwt("a" * 513), ".actor_jwt.audiences[0]"),
        (_jwt("a", seconds=299), ".actor_jwt.expiration_seconds"),
        (_jwt("a", seconds=3601), ".actor_jwt.expiration_seconds"),
        (_jwt("a", seconds=0), ".actor_jwt.expiration_seconds"),
    ],
)
def test_a_bad_effect_is_refused_by_its_path(bad: pb.CredentialHeader, path: str) -> None:
    where = "rules[0].https.effects.replace_headers"
    assert _refused(policy(https("a.example", effects=headers(bad)))) == f"{where}[0]{path}"


def test_headers_are_replaced_once_and_by_sixteen_at_most() -> None:
    where = "rules[0].http.effects.replace_headers"
    twice = headers(header("X-A"), header("x-a"))
    assert _refused(policy(http("a.example", effects=twice))) == f"{where}[1].header"
    many = headers(*(header(f"x-{i}") for i in range(17)))
    assert _refused(policy(http("a.example", effects=many))) == where


@pytest.mark.parametrize(
    "uri",
    [
        *("secret", "ate-secret://", "ate-secret://v", "ate-secret://v/m", "ate-secret://v/m/"),
        *("ate-secret://v/m/t/", "ate-secret://v//t", "ate-secret://V/m/t", "ate-secret://v:1/m/t"),
        *("ate-secret://u@v/m/t", "ate-secret://v/m/t?q", "ate-secret://v/m/t#f"),
        *(
            "ate-secret://v/m/%74",
            "ate-secret://v/m/../t",
            "ate-secret://v/./t",
            "ATE-SECRET://v/m/t",
        ),
        *(
            "https://v/m/t",
            "ate-secret:///m/t",
            "ate-secret://v/m/a b",
            f"ate-secret://v/m/{'a' * 2048}",
        ),
    ],
)
def test_a_credential_uri_outside_the_grammar_is_refused(uri: str) -> None:
    given = policy(https("a.example", effects=headers(header("a", uri))))
    assert _refused(given) == "rules[0].https.effects.replace_headers[0].credential_uri"


def test_a_secret_in_the_place_of_its_name_is_not_repeated() -> None:
    given = policy(https("a.example", effects=headers(header("a", "sk-hunter2"))))
    with pytest.raises(CallError) as caught:
        egress_policy.for_create(given, "team-a")
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (policy(*[http(f"h{i}.example") for i in range(257)]), "rules"),
        (pb.EgressPolicy(metadata=pb.ResourceMetadata(atespace="team-a")), "metadata.name"),
        (
            pb.EgressPolicy(metadata=pb.ResourceMetadata(atespace="team-b", name="default")),
            "metadata.atespace",
        ),
        (policy(uid="u"), "metadata.uid"),
        (policy(version=1), "metadata.version"),
    ],
)
def test_a_bad_policy_is_refused_by_its_path(given: pb.EgressPolicy, path: str) -> None:
    assert _refused(given) == path


@pytest.mark.parametrize(("uid", "version", "path"), [("", 1, "uid"), ("u", 0, "version")])
def test_an_update_says_what_its_caller_saw(uid: str, version: int, path: str) -> None:
    with pytest.raises(CallError, match=rf"egress_policy.metadata.{path}: is required"):
        egress_policy.for_update(policy(uid=uid, version=version), "team-a")


def test_a_field_that_is_not_known_is_refused_wherever_it_is() -> None:
    unknown = b"\x98\x06\x01"  # field 99
    inner = pb.EgressRule(
        http=pb.HTTPRule.FromString(http("a.example").http.SerializeToString() + unknown)
    )
    assert _refused(policy(http("b.example"), inner)) == "rules[1].http"
    outer = pb.EgressPolicy.FromString(policy().SerializeToString() + unknown)
    assert _refused(outer) == "egress_policy"
