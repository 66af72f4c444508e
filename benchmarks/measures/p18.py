"""P-18: what a policy decision costs with 10 000 rules, over what it costs with 10.

Both in turns, on the same names: those that 10 rules have too.
"""

from __future__ import annotations

import statistics

from benchmarks.policies import decision_microseconds
from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 9


def take() -> Outcome:
    pairs = [
        (decision_microseconds(10_000, of=10), decision_microseconds(10)) for _ in range(_RUNS)
    ]
    runs = [{"value": many / few, "many_us": many, "few_us": few} for many, few in pairs]
    return Outcome(
        value=statistics.median(run["value"] for run in runs),
        ours=statistics.median(run["many_us"] for run in runs),
        peer=statistics.median(run["few_us"] for run in runs),
        peer_name="the same with 10 rules, in µs",
        runs=runs,
    )
