"""A command that has no way to a directory, however it tries."""

import os
import subprocess
from pathlib import Path

import pytest
from atenet.local.hidden import without


@pytest.mark.conformance("E-20")
@pytest.mark.parametrize(
    "tried",
    [
        *("cat {key}", "umount {keys} && cat {key}", "cat /proc/{pid}/root{key}"),
        "nsenter --mount=/proc/{pid}/ns/mnt cat {key}",
    ],
    ids=["open", "undo", "by another process", "another's view"],
)
def test_a_process_without_a_directory_has_no_way_round_it(tmp_path: Path, tried: str) -> None:
    key = tmp_path / "key.pem"
    key.write_text("the key")
    script = tried.format(key=key, keys=tmp_path, pid=os.getpid())
    done = subprocess.run(
        [*without(tmp_path), "sh", "-c", script], capture_output=True, check=False
    )
    assert done.returncode != 0
    assert b"the key" not in done.stdout
    # The words are right: with a way to it they find it.
    if tried != "umount {keys} && cat {key}":
        free = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
        assert free.stdout == b"the key"


def test_everything_else_is_as_it_was(tmp_path: Path) -> None:
    hidden, other = tmp_path / "hidden", tmp_path / "other"
    hidden.mkdir()
    script = f"echo said > {other} && ls -A {hidden} && exit 7"
    done = subprocess.run([*without(hidden), "sh", "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (7, b"")
    assert other.read_text() == "said\n"
