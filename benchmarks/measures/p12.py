"""P-12: warm ResumeActor over mutual TLS, 64 callers with a connection each, calls per second.

Beside it, in turns: the same calls through Python's own server, without the front; and 64 callers that share one
connection, as a router's do. Caller and control plane share the machine's first two cores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.control_plane import build_load, load, warm_control_plane
from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 5
_SECONDS = 5.0
_CALLERS = 64
_ACTORS = 1_000


def take() -> Outcome:
    program = build_load()
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        return _taken(program)
    finally:
        os.sched_setaffinity(0, before)


def _taken(program: Path) -> Outcome:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        runs: list[dict[str, Any]] = []
        for _ in range(_RUNS):
            with warm_control_plane(root, _ACTORS) as plane:
                own, shared = (
                    load(program, plane, callers=_CALLERS, connections=n, seconds=_SECONDS)
                    for n in (_CALLERS, 1)
                )
            with warm_control_plane(root, _ACTORS, front="off") as plane:
                python = load(
                    program, plane, callers=_CALLERS, connections=_CALLERS, seconds=_SECONDS
                )
            seen = {"front": own, "front_one_connection": shared, "python": python}
            runs.append({"value": own["calls_per_second"], **seen})
    ours = statistics.median(run["front"]["calls_per_second"] for run in runs)
    peer = statistics.median(run["python"]["calls_per_second"] for run in runs)
    also = {
        "p99_ms": statistics.median(run["front"]["p99_ms"] for run in runs),
        "one_connection_calls_per_second": statistics.median(
            run["front_one_connection"]["calls_per_second"] for run in runs
        ),
        "times_python": ours / peer,
        "front_us_a_call": statistics.median(_cpu(run["front"]) for run in runs),
        "python_us_a_call": statistics.median(_cpu(run["python"]) for run in runs),
        "actors": _ACTORS,
    }
    return Outcome(
        value=ours,
        ours=ours,
        peer=peer,
        peer_name="the same control plane without its front",
        runs=runs,
        also=also,
    )


def _cpu(seen: dict[str, float]) -> float:
    """Microseconds of processor time a call, in the control plane."""
    return seen["user_us"] + seen["system_us"]
