"""Asking every process of a system for what it denied."""

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from atenet.cli import policy_denials
from atenet.client.request import ClientTls
from atenet.denials.denial import Denial
from atenet.errors import AteError
from atenet.identity.spiffe import EGRESS_SERVER_NAME
from atenet.local.layout import Layout

RECORD = {
    "processes": [
        {"name": "ateapi", "addresses": {"grpc": "127.0.0.1:1"}},
        {"name": "worker-1", "addresses": {"atunnel": "127.0.0.1:2", "denials": "127.0.0.1:3"}},
        {"name": "egress", "addresses": {"tunnels": "127.0.0.1:4", "denials": "127.0.0.1:5"}},
    ]
}


def denial(minute: int, reason: str) -> Denial:
    when = datetime(2026, 1, 31, 12, minute, tzinfo=UTC)
    return Denial(
        first=when, last=when, times=1, kind=None, host="a.example", port=None, rule=None,
        reason=reason, detail="",
    )  # fmt: skip


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What each server says, by the name that it must prove: denials, or an error."""
    answers: dict[str, Any] = {}

    def fetch(_address: str, name: str, _actor: str, _context: ssl.SSLContext) -> list[Denial]:
        said = answers[name]
        if isinstance(said, AteError):
            raise said
        return list(said)

    monkeypatch.setattr(policy_denials, "running", lambda _home: (Layout(tmp_path), RECORD))
    monkeypatch.setattr(policy_denials, "fetch_denials", fetch)
    monkeypatch.setattr(ClientTls, "context", lambda _self: ssl.create_default_context())
    return answers


WORKER_NAME = "local.default.pod.cluster.local"


def test_gateway_and_workers_are_asked_and_the_newest_comes_first(
    told: dict[str, Any], tmp_path: Path
) -> None:
    told[WORKER_NAME] = [denial(1, "name-denied"), denial(3, "name-denied")]
    told[EGRESS_SERVER_NAME] = [denial(2, "no-egress-rule")]
    found = policy_denials.recent_denials(tmp_path, "team/agent")
    assert [each.last.minute for each in found] == [3, 2, 1]


def test_one_that_does_not_answer_is_told_and_left_out(
    told: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told[WORKER_NAME] = AteError("127.0.0.1:3 cannot be asked")
    told[EGRESS_SERVER_NAME] = [denial(2, "no-egress-rule")]
    assert len(policy_denials.recent_denials(tmp_path, "team/agent")) == 1
    assert "worker-1 is left out: 127.0.0.1:3 cannot be asked" in capsys.readouterr().err


def test_when_nobody_answers_it_is_an_error(told: dict[str, Any], tmp_path: Path) -> None:
    told[WORKER_NAME] = told[EGRESS_SERVER_NAME] = AteError("cannot be asked")
    with pytest.raises(AteError, match="cannot be asked"):
        policy_denials.recent_denials(tmp_path, "team/agent")
