"""Which cores the path under test has, and which the load generator, the origin and the control plane.

They share none where there are two: then the path alone is what limits, and every side of a comparison gets the
same cores and as many threads.
"""

from __future__ import annotations

import os

__all__ = ["LOAD", "PATH", "THREADS"]

_ALL = sorted(os.sched_getaffinity(0))
_HALF = max(1, len(_ALL) // 2)

PATH = frozenset(_ALL[:_HALF])
LOAD = frozenset(_ALL[_HALF:]) or PATH
# Of each process of the path.
THREADS = len(PATH)
