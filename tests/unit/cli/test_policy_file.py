"""Egress policies from YAML: what is read, and how each mistake is told."""

import pytest
from atenet.cli.failure import BadInput
from atenet.cli.policy_file import parse_policy

GOOD = """
rules:
  - http: {hostnames: [a.example, "*.b.example"]}
  - https:
      hostnames:
        - api.example.com
      ports: {numbers: [443, 8443]}
      effects:
        replaceHeaders:
          - header: Authorization
            prefix: "Bearer "
            credentialUri: ate-secret://files.example/main/key
  - tls_passthrough: {hostnames: ["*"], ports: {all: }}
"""


def test_a_policy_is_read_in_either_spelling() -> None:
    found = parse_policy(GOOD, "p.yaml")
    assert list(found.rules[0].http.hostnames) == ["a.example", "*.b.example"]
    assert list(found.rules[1].https.ports.numbers) == [443, 8443]
    assert found.rules[1].https.effects.replace_headers[0].prefix == "Bearer "
    assert found.rules[2].tls_passthrough.ports.HasField("all")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("api.example.com", "API.example.com"), "line 6: rules[1].https.hostnames[0]: must be in lower case"),
        (("[443, 8443]", "[443, 0]"), "line 7: rules[1].https.ports.numbers[1]: must be from 1 to 65535, not 0"),
        (
            ("header: Authorization", "header: Host"),
            "line 10: rules[1].https.effects.replace_headers[0].header: must not be a protected name",
        ),
        (("hostnames: [a.example", "hostname: [a.example"), "line 3: unknown field `rules[0].http.hostname`"),
        (("ports: {all: }", "ports: {}"), "line 13: rules[2].tls_passthrough.ports: must have numbers or all"),
        ((GOOD, "rules: []\n---\nrules: []"), "holds 2 policies; an actor has one"),
        ((GOOD, ""), "holds no policy"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_line_and_field(change: tuple[str, str], told: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_policy(GOOD.replace(*change), "p.yaml")
    assert told in str(caught.value)


def test_every_fault_is_told_at_once() -> None:
    text = "rules:\n  - http: {hostnames: [A.example]}\n  - http: {hostnames: [a_b.example]}\n"
    with pytest.raises(BadInput) as caught:
        parse_policy(text, "p.yaml")
    lines = str(caught.value).partition("\nhint")[0].splitlines()
    assert [line.split(":")[0] for line in lines] == ["p.yaml, line 2", "p.yaml, line 3"]
