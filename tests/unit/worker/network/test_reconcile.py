import subprocess

from atenet.worker.network import clear_leftovers, netns
from atenet.worker.network.pair import build, demolish


def test_what_an_interrupted_run_left_is_killed_and_removed(prefix: str) -> None:
    pair = build(f"{prefix}1")
    with subprocess.Popen(
        ["nsenter", f"--net={pair.runtime_path}", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as left:
        assert left.stdin is not None
        assert left.stdout is not None
        left.stdin.write(b"it is inside now\n")
        left.stdin.flush()
        left.stdout.readline()
        assert clear_leftovers(prefix) == [pair.runtime, pair.gateway]
        assert left.wait(10) == -9
    assert netns.names(prefix) == []


def test_other_prefixes_are_left_alone(prefix: str) -> None:
    pair = build(f"{prefix}1")
    assert clear_leftovers(f"{prefix}2") == []
    assert netns.names(prefix) == [pair.runtime, pair.gateway]
    demolish(pair)
