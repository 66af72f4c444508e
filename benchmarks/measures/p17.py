"""P-17: one policy decision among 1 000 rules, in microseconds, the name's parsing included."""

from __future__ import annotations

import statistics

from benchmarks.policies import decision_microseconds
from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 9
_RULES = 1_000


def take() -> Outcome:
    runs = [{"value": decision_microseconds(_RULES)} for _ in range(_RUNS)]
    value = statistics.median(run["value"] for run in runs)
    return Outcome(value=value, ours=value, runs=runs)
