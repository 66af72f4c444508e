"""`atenet router`: the mode decides which flags there are, and is never guessed."""

import json

import pytest
from atenet.cli.atenet import atenet
from click.testing import CliRunner

INGRESS, EGRESS = "--ingress-allowed-spiffe-ids", "--egress-policy-cache-ttl"


def said(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(atenet, ["router", *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "words", [("--run-envoy", "true"), ("--mode", "both"), ("--mode=",), ("bootstrap",)]
)
def test_a_mode_that_is_missing_or_unknown_is_refused(words: tuple[str, ...]) -> None:
    code, output = said(*words)
    assert code == 2
    assert "--mode" in output
    assert "ingress, egress" in output


@pytest.mark.parametrize("form", ["--mode={}", "--mode {}"])
@pytest.mark.parametrize(
    ("mode", "own", "others"), [("ingress", INGRESS, EGRESS), ("egress", EGRESS, INGRESS)]
)
def test_each_mode_has_its_own_flags(form: str, mode: str, own: str, others: str) -> None:
    code, output = said(*form.format(mode).split(), "--help")
    assert code == 0
    assert own in output
    assert others not in output


def test_a_flag_of_the_other_mode_is_refused() -> None:
    code, output = said("--mode=egress", INGRESS, "spiffe://a/b")
    assert code == 2
    assert "No such option" in output


def test_the_bootstrap_of_a_gateway_has_its_own_ports() -> None:
    files = ("ateapi-ca-file", "ateapi-client-cert", "envoy-cert-path", "actor-identity-ca-file")
    given = [word for name in files for word in (f"--{name}", "/nowhere")]
    code, output = said("bootstrap", "--mode", "egress", *given)
    assert code == 0
    printed = json.loads(output)
    assert printed["admin"]["address"]["socket_address"]["port_value"] == 15000
