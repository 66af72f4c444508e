"""What a policy says of a URL, in words."""

import pytest
from atenet.cli.failure import BadInput
from atenet.cli.policy_file import parse_policy
from atenet.cli.policy_question import explain
from atenet.proto import ateapi_pb2 as pb

POLICY = parse_policy(
    """
rules:
  - http: {hostnames: ["*.a.example"]}
  - https:
      hostnames: [api.example.com]
      effects: {replaceHeaders: [{header: X-Key, credentialUri: ate-secret://files.example/a/b}]}
  - tlsPassthrough: {hostnames: [pinned.example.com], ports: {numbers: [443]}}
""",
    "p.yaml",
)


@pytest.mark.parametrize(
    ("url", "rule", "words"),
    [
        ("http://x.a.example/", 0, "rules[0].http: forwarded"),
        ("https://API.example.com./v1?q", 1, "intercepted"),
        ("https://api.example.com", 1, "replaced where the request has them: x-key"),
        ("api.example.com", 1, "rules[1].https"),
        ("https://u:p@api.example.com:443/", 1, "rules[1].https"),
        ("https://pinned.example.com", 2, "untouched"),
    ],
)
def test_what_is_allowed_is_told_with_its_rule(url: str, rule: int, words: str) -> None:
    answer = explain(POLICY, url)
    assert (answer.allowed, answer.rule) == (True, rule)
    assert words in answer.text
    assert answer.data()["rule"] == rule


@pytest.mark.parametrize(
    ("url", "reason", "words"),
    [
        ("https://x.a.example", "no-egress-rule", "no https or tls_passthrough rule covers x.a.example"),
        ("http://a.example", "no-egress-rule", "no http rule covers a.example"),
        ("https://api.example.com:8443", "egress-port-denied", "none of them port 8443"),
        ("http://[2001:db8::1]/", "no-egress-rule", "[2001:db8::1]"),
    ],
)  # fmt: skip
def test_what_is_denied_is_told_with_its_reason(url: str, reason: str, words: str) -> None:
    answer = explain(POLICY, url)
    assert (answer.allowed, answer.rule, answer.reason) == (False, None, reason)
    assert words in answer.text


def test_without_a_policy_nothing_may_leave() -> None:
    answer = explain(pb.EgressPolicy(), "https://a.example")
    assert answer.reason == "no-egress-policy"
    assert "nothing may leave" in answer.text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://a.example", "only http and https"),
        ("https://127.1/", "the host must be a name or an address in its usual form"),
        ("https://a_b.example", "the host must use only letters"),
        ("https://a.example:0x1/", "the port must be"),
        ("https:///x", "the host must not be empty"),
    ],
)
def test_what_is_no_such_url_is_an_error(url: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        explain(POLICY, url)
    assert words in str(caught.value)
