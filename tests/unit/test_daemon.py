import json
import subprocess
import sys
from pathlib import Path

import pytest
from atenet.daemon import announce_ready, only_one
from atenet.errors import AteError


def run(body: str, level: str = "info") -> subprocess.CompletedProcess[str]:
    source = (
        "import os, signal\nfrom atenet import daemon\nfrom atenet.errors import AteError\n"
        f"async def serve(stop):\n    {body}\n"
        f"daemon.run('part', {level!r}, serve)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_asks_it_to_stop_and_it_ends_with_0(number: str) -> None:
    done = run(f"os.kill(os.getpid(), signal.{number}); await stop.wait()")
    assert (done.returncode, done.stdout) == (0, "")


def test_an_error_is_two_lines_for_people_and_one_for_programs() -> None:
    done = run("raise AteError('no room', hint='make some')")
    assert done.returncode == 1
    logged, *said = done.stderr.splitlines()
    assert json.loads(logged)["error"] == "no room"
    assert said == ["error: no room", "hint: make some"]


def test_an_unknown_level_is_named() -> None:
    done = run("pass", level="loud")
    assert done.returncode == 1
    assert "--log-level: log level 'loud'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_wrong_with_a_value_is_not_said_of_the_level() -> None:
    done = run("raise ValueError('of something else')")
    assert done.returncode == 1
    assert "ValueError: of something else" in done.stderr
    assert "--log-level" not in done.stderr


def test_what_the_system_refuses_names_the_file(tmp_path: Path) -> None:
    done = run(f"os.unlink({str(tmp_path)!r})")
    assert done.returncode == 1
    logged, *said = done.stderr.splitlines()
    assert "IsADirectoryError" in json.loads(logged)["exception"]
    assert said[0] == f"error: {tmp_path}: Is a directory"
    assert said[1].startswith("hint: ")


def test_the_ready_file_appears_whole(tmp_path: Path) -> None:
    announce_ready(tmp_path / "ready", {"grpc": "127.0.0.1:1"})
    assert json.loads((tmp_path / "ready").read_text()) == {"grpc": "127.0.0.1:1"}
    assert [path.name for path in tmp_path.iterdir()] == ["ready"]


def test_a_ready_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(AteError, match="--ready-file"):
        announce_ready(tmp_path / "no" / "ready", {})


def test_a_directory_is_one_processs_at_a_time(tmp_path: Path) -> None:
    where = tmp_path / "state"
    with only_one(where, "--state-dir"):
        assert where.stat().st_mode & 0o777 == 0o700
        twice = only_one(where, "--state-dir")
        with pytest.raises(AteError, match=r"--state-dir .* is used by another process"), twice:
            pytest.fail("held twice")
    with only_one(where, "--state-dir"):
        assert list(where.iterdir()) == []
