"""P-04: the 99th percentile at 70 % of the peer's best rate, against the peer's at the same rate.

HTTP/1.1 over HTTPS; the best rate is what wrk reaches with as many connections.
"""

from __future__ import annotations

import statistics

from benchmarks.path.against_envoy import PEER, both, rounds, versions
from benchmarks.path.compared import compared
from benchmarks.path.load import h2load_at, wrk
from benchmarks.result import Outcome

__all__ = ["take"]

_SHARE = 0.7


def take() -> Outcome:
    with both() as (_, ours, peer):
        best = statistics.median(wrk(f"https://{peer.https}/").rps for _ in range(3))
        seen = rounds(ours, peer, lambda url: h2load_at(url, best * _SHARE))
    also = {"peer's best rate": best, "rate": best * _SHARE}
    return compared(seen, "p99_ms", PEER, also=also, versions=versions())
