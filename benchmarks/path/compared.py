"""From rounds in turns to an outcome: the ratio of each round, and the median of them."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.path.cores import LOAD, PATH, THREADS
from benchmarks.path.turns import Numbers, median
from benchmarks.result import Outcome

__all__ = ["SETUP", "compared"]

SETUP = {
    "cores": "the path's processes on one half of the cores, generator, origin and control plane on the other",
    "path_cores": sorted(PATH),
    "load_cores": sorted(LOAD),
    "threads": THREADS,
}


def compared(
    rounds: list[list[Numbers]],
    key: str,
    peer_name: str,
    *,
    also: dict[str, Any] | None = None,
    versions: dict[str, str] | None = None,
) -> Outcome:
    """The first side's number over the second one's, as the median over the rounds."""
    ratios = [ours[key] / peer[key] for ours, peer in rounds]
    runs = [
        {"value": ratio, "ours": ours, "peer": peer}
        for ratio, (ours, peer) in zip(ratios, rounds, strict=True)
    ]
    return Outcome(
        value=statistics.median(ratios),
        ours=median(rounds, 0, key),
        peer=median(rounds, 1, key),
        peer_name=peer_name,
        runs=runs,
        versions=versions or {},
        also={"setup": SETUP, **(also or {})},
    )
