"""Calls of runsc, with programs in its place: they end when it ends, and never later than they must."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet.worker.sandbox.gvisor.runsc import Runsc, RunscError, RunscTimeoutError


@pytest.fixture
def output() -> Iterator[tuple[int, int]]:
    """Reading and writing end of what a container would inherit."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def runsc(where: Path, script: str) -> Runsc:
    """`script`: what it does; $TOLD is the file that it may write to."""
    program = where / "runsc"
    program.write_text(f"#!/bin/sh\nTOLD={where}/told\n{script}\n")
    program.chmod(0o755)
    return Runsc(program, where / "state")


def test_nobody_looks_for_its_end_from_time_to_time(
    tmp_path: Path, output: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        pytest.fail(f"a request that wakes an actor would wait for these {seconds} s")

    monkeypatch.setattr(time, "sleep", sleep)
    slow = runsc(tmp_path, "sleep 0.3; echo ended > $TOLD")
    admitted: list[int] = []
    slow.call("restore", "x", place=tmp_path, output=output[1], admit=admitted.append)
    assert (tmp_path / "told").read_text() == "ended\n"
    assert len(admitted) == 1


def test_nothing_runs_before_it_is_admitted(tmp_path: Path, output: tuple[int, int]) -> None:
    ready = runsc(tmp_path, "echo ran > $TOLD")

    def admit(pid: int) -> None:
        assert not (tmp_path / "told").exists()

    ready.call("create", "x", place=tmp_path, output=output[1], admit=admit)
    assert (tmp_path / "told").exists()


@pytest.mark.parametrize("admitted", [True, False])
def test_one_that_hangs_is_ended_and_named(
    tmp_path: Path, output: tuple[int, int], admitted: bool
) -> None:
    hanging = runsc(tmp_path, "echo $$ > $TOLD; exec sleep 600")
    admit = (lambda pid: None) if admitted else None
    with pytest.raises(RunscTimeoutError, match="runsc restore did not finish in"):
        hanging.call("restore", place=tmp_path, output=output[1], seconds=1.0, admit=admit)
    pid = int((tmp_path / "told").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_that_ends_without_reading_its_line_is_judged_by_how_it_ended(
    tmp_path: Path, output: tuple[int, int]
) -> None:
    gone = Runsc(Path("/nonexistent/runsc"), tmp_path / "state")

    def admit(pid: int) -> None:
        os.kill(pid, 9)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(RunscError, match="runsc create failed"):
        gone.call("create", "x", place=tmp_path, output=output[1], admit=admit)


def test_with_thousands_of_open_files_it_is_waited_for_as_with_few(
    tmp_path: Path, output: tuple[int, int]
) -> None:
    many = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        runsc(tmp_path, "echo ran > $TOLD").call("start", place=tmp_path, output=output[1])
    finally:
        for each in many:
            os.close(each)
    assert (tmp_path / "told").exists()
