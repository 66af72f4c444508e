"""A system that stays in front, and one whose start is interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.local_system import LIMIT, Ate

pytestmark = pytest.mark.timeout(180)


@contextmanager
def up(ate: Ate, *flags: str) -> Iterator[subprocess.Popen[str]]:
    script = Path(sys.executable).with_name("ate")
    with subprocess.Popen(
        [script, "up", *flags, *ate.network],
        env={**os.environ, "ATE_HOME": str(ate.layout.home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_front_it_serves_until_it_is_told_to_stop(ate: Ate, number: signal.Signals) -> None:
    with up(ate, "--foreground", "--workers", "1") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("up in ")
        assert ate("status").code == 0
        process.send_signal(number)
        process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert ate.left_behind() == []


async def test_an_interrupted_start_leaves_nothing_running(ate: Ate) -> None:
    with up(ate) as process:
        await eventually(ate.layout.record.exists)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert err.endswith("interrupted\n")
    assert ate.left_behind() == []
