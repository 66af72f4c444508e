"""P-21: seconds from `ate up` to ready, as the person at the terminal sees them; the slower dataplane counts."""

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
from atenet.local.settings import DATAPLANES, LocalSettings

from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 7


def take() -> Outcome:
    """First starts (new state directory, authorities to make) and later ones, on each dataplane, in turns."""
    runs = [
        (dataplane, first, seconds)
        for _ in range(_RUNS)
        for dataplane in DATAPLANES
        for first, seconds in _pair(dataplane)
    ]
    medians = {
        wanted: statistics.median(seconds for dataplane, _, seconds in runs if dataplane == wanted)
        for wanted in DATAPLANES
    }
    value = max(medians.values())
    kept = [dict(zip(("dataplane", "first", "value"), run, strict=True)) for run in runs]
    return Outcome(value=value, ours=value, runs=kept, also={"medians": medians})


def _pair(dataplane: str) -> list[tuple[bool, float]]:
    home = Path(tempfile.mkdtemp(prefix="ate-bench-"))
    try:
        return [(True, _up_and_down(home, dataplane)), (False, _up_and_down(home, dataplane))]
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _up_and_down(home: Path, dataplane: str) -> float:
    settings = beside_others(LocalSettings(dataplane=dataplane))
    network = ["--address", settings.address, "--worker-network", settings.worker_network]
    try:
        began = time.perf_counter()
        _ate("up", "--home", home, "--dataplane", dataplane, *network)
        return time.perf_counter() - began
    finally:
        _ate("down", "--home", home)


def _ate(*words: Any) -> None:
    script = Path(sys.executable).parent / "ate"
    subprocess.run([script, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
