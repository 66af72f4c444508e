"""P-21: seconds from `ate up` to ready, as the person at the terminal sees them."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from atenet.local.ports import beside_others
from atenet.local.settings import LocalSettings

from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 7


def take() -> Outcome:
    """First starts (new state directory, authorities to make) and later ones, in turns."""
    runs = [{"value": seconds, "first": first} for _ in range(_RUNS) for first, seconds in _pair()]
    value = statistics.median(run["value"] for run in runs)
    return Outcome(value=value, ours=value, runs=runs)


def _pair() -> list[tuple[bool, float]]:
    home = Path(tempfile.mkdtemp(prefix="ate-bench-"))
    try:
        return [(True, _up_and_down(home)), (False, _up_and_down(home))]
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _up_and_down(home: Path) -> float:
    settings = beside_others(LocalSettings())
    network = ["--address", settings.address, "--worker-network", settings.worker_network]
    try:
        began = time.perf_counter()
        _ate("up", "--home", home, *network)
        return time.perf_counter() - began
    finally:
        _ate("down", "--home", home)


def _ate(*words: Any) -> None:
    script = Path(sys.executable).parent / "ate"
    subprocess.run([script, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
