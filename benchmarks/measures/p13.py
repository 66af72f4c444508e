"""P-13: P-12's calls over 1 000 000 stored actors, all of them asked for, against 1 000; both in turns."""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.control_plane import build_load, load, warm_control_plane
from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 15
_SECONDS = 2.0  # short turns: what else the machine does then falls on both alike
_CALLERS = 64
_MANY, _FEW = 1_000_000, 1_000


def take() -> Outcome:
    program = build_load()
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        return _taken(program)
    finally:
        os.sched_setaffinity(0, before)


def _taken(program: Path) -> Outcome:
    with (
        tempfile.TemporaryDirectory() as directory,
        warm_control_plane(Path(directory) / "many", _MANY) as many,
        warm_control_plane(Path(directory) / "few", _FEW) as few,
    ):
        runs: list[dict[str, Any]] = []
        for _ in range(_RUNS):
            of_many, of_few = (
                load(program, plane, callers=_CALLERS, connections=_CALLERS, seconds=_SECONDS)
                for plane in (many, few)
            )
            ratio = of_many["calls_per_second"] / of_few["calls_per_second"]
            runs.append({"value": ratio, "many": of_many, "few": of_few})
    return Outcome(
        value=statistics.median(run["value"] for run in runs),
        ours=statistics.median(run["many"]["calls_per_second"] for run in runs),
        peer=statistics.median(run["few"]["calls_per_second"] for run in runs),
        peer_name="the same with 1 000 actors",
        runs=runs,
    )
