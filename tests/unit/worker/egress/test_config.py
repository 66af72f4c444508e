"""From flags to the engine's configuration."""

import json
from pathlib import Path

import pytest
from atenet._engine import Capture
from atenet.errors import AteError
from atenet.identity.spiffe import EGRESS_SERVER_NAME
from atenet.worker.egress import capture_config, config

from tests.unit.worker.test_settings import settings


def test_the_engine_takes_what_the_defaults_make() -> None:
    made = capture_config(settings())
    assert "gateway" not in made
    Capture(json.dumps(made)).close()


def test_a_gateway_is_one_whose_trust_was_given() -> None:
    made = capture_config(settings(egress_gateway_trust=Path("/trust.pem")))
    assert made["gateway"] == {"trust_bundle": "/trust.pem", "server_name": EGRESS_SERVER_NAME}


def test_resolvers_are_the_flags_or_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings(dns_answers="upstream", dns_upstream=("10.0.0.2", "[::1]:54"))
    assert capture_config(given)["dns"]["upstream"] == ["10.0.0.2:53", "[::1]:54"]
    Capture(json.dumps(capture_config(given))).close()

    node = tmp_path / "resolv.conf"
    monkeypatch.setattr(config, "_RESOLV_CONF", node)
    node.write_text("nameserver 10.9.9.9\n")
    assert capture_config(settings(dns_answers="upstream"))["dns"]["upstream"] == ["10.9.9.9:53"]
    assert capture_config(settings())["dns"]["upstream"] == []
    node.write_text("# nothing\n")
    with pytest.raises(AteError, match="names no resolver"):
        capture_config(settings(dns_answers="upstream"))
    node.unlink()
    with pytest.raises(AteError, match=r"cannot read .*resolv\.conf"):
        capture_config(settings(dns_answers="upstream"))
