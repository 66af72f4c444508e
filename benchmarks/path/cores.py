"""Which cores the path under test has, and which the load generator, the origin and the control plane.

They share none where there are two: then the path alone is what limits, and every side of a comparison gets the
same cores and as many threads.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

__all__ = ["LOAD", "PATH", "THREADS", "busy_seconds"]

_ALL = sorted(os.sched_getaffinity(0))
_HALF = max(1, len(_ALL) // 2)

PATH = frozenset(_ALL[:_HALF])
LOAD = frozenset(_ALL[_HALF:]) or PATH
# Of each process of the path.
THREADS = len(PATH)

_TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds(cores: Collection[int]) -> float:
    """What these cores have worked so far, whoever for."""
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    spent = {line[0]: [int(word) for word in line[1:9]] for line in lines if line[0][:3] == "cpu"}
    # All but idle and waiting for a disk.
    return sum(sum(spent[f"cpu{core}"]) - sum(spent[f"cpu{core}"][3:5]) for core in cores) / _TICKS
