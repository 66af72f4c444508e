"""`ate policy denials` and `suggest` with --api: what a control plane somewhere else knows of denials."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from atenet.cli.main import ate
from atenet.errors import AteError
from click.testing import CliRunner

from tests.support.addresses import unused_port
from tests.support.denials_stage import VIEWER, Stage, denials_stage, entry


@pytest.fixture(params=["off", "auto"])
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """With and without the engine's front before it."""
    async with denials_stage(tmp_path, request.param) as made:
        yield made


async def test_the_command_shows_them_to_a_person_with_a_token(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    with stage.gateway_serves():
        done = await stage.ran("denials", "team-a/agent", "-o", "json", *stage.by_token)
        assert done.exit_code == 0, done.output + repr(done.exception)
        (shown,) = json.loads(done.stdout)
        assert (shown["host"], shown["port"], shown["rule"]) == ("a.example", 443, None)
        assert "worker worker-1 is left out" in done.stderr


async def test_the_command_shows_them_to_a_person_with_a_certificate(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    with stage.gateway_serves(), stage.worker_serves():
        credential = stage.plane.identity.credential("viewer", VIEWER)
        roots = stage.plane.identity.trust("service-dns")
        done = await stage.ran(
            *("denials", "team-a/agent", "--api", stage.plane.addresses["grpc"]),
            *("--api-roots", str(roots), "--credential", str(credential)),
        )
        assert done.exit_code == 0, done.output + repr(done.exception)
        assert "a.example" in done.stdout


async def test_a_rule_is_suggested_from_there(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    with stage.gateway_serves(), stage.worker_serves():
        done = await stage.ran("suggest", "team-a/agent", *stage.by_token)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert "- a.example" in done.stdout
    assert "https:" in done.stdout


async def test_a_control_plane_that_is_not_there_is_told_with_what_helps(stage: Stage) -> None:
    words = stage.by_token
    words[1] = f"127.0.0.1:{unused_port('127.0.0.1')}"
    done = await stage.ran("denials", "team-a/agent", *words)
    assert isinstance(done.exception, AteError)
    assert "port-forward" in (done.exception.hint or "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--api", "nowhere"], "--api: 'nowhere' is not <host>:<port>"),
        (["--api", "a:1"], "--api needs --api-roots"),
        (["--api", "a:1", "--api-roots", "a"], "one of --token-file and --credential"),
        (
            ["--api", "a:1", "--api-roots", "a", "--token-file", "b", "--credential", "c"],
            "one of --token-file and --credential",
        ),
        (
            ["--api", "a:1", "--api-roots", "/nowhere", "--token-file", "b"],
            "--api-roots: cannot read /nowhere",
        ),
    ],
)
def test_what_is_missing_is_named_before_anybody_is_asked(words: list[str], said: str) -> None:
    done = CliRunner().invoke(ate, ["policy", "denials", "team-a/agent", *words])
    assert isinstance(done.exception, AteError)
    assert said in done.exception.message
