"""Finding and removing what is ours, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from atenet.local.layout import Layout
from atenet.local.sweep import MARK, find_namespaces, find_processes, sweep

WAITS = "print('here', flush=True); import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAITS


@contextmanager
def process(mark: str, code: str = WAITS) -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, MARK: mark}
    )
    try:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def inside(namespace: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has entered the namespace, and stays."""
    stays = ["sh", "-c", "echo here; exec sleep 600"]
    started = subprocess.Popen(["ip", "netns", "exec", namespace, *stays], stdout=subprocess.PIPE)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"here\n"
        yield started
    finally:
        started.kill()
        started.communicate()


def test_marked_processes_end_and_others_live(tmp_path: Path) -> None:
    ours, others = Layout(tmp_path / "ours"), Layout(tmp_path / "others")
    with process(ours.system_id) as mine, process(others.system_id) as foreign:
        assert find_processes(ours.system_id) == [mine.pid]
        swept = sweep(ours)
        assert swept.processes == [mine.pid]
        assert mine.wait(5) != 0
        assert foreign.poll() is None


def test_one_that_ignores_the_request_is_killed_after_the_grace(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with process(layout.system_id, DEAF) as mine:
        sweep(layout, grace_seconds=0.2)
        assert mine.wait(5) == -9


def test_a_clean_machine_is_left_alone(tmp_path: Path) -> None:
    assert not sweep(Layout(tmp_path))


@pytest.mark.usefixtures("root")
def test_our_network_namespaces_go_and_others_stay(tmp_path: Path) -> None:
    ours, others = Layout(tmp_path / "ours"), Layout(tmp_path / "others")
    mine, foreign = f"{ours.net_prefix(1)}a", f"{others.net_prefix(1)}a"
    try:
        for name in (mine, foreign):
            subprocess.run(["ip", "netns", "add", name], check=True)
        with inside(mine) as found:
            assert sweep(ours).namespaces == [mine]
            assert found.wait(10) == -9
        assert find_namespaces(ours.net_family) == []
        assert find_namespaces(others.net_family) == [foreign]
    finally:
        sweep(ours)
        sweep(others)
