"""P-03: CPU time of the router process a request, against the Envoy router's, in microseconds.

Over HTTP/1.1 and over HTTP/2; the value is that of the worse of both.
"""

from __future__ import annotations

import dataclasses

from benchmarks.path.against_envoy import PEER, both, rounds, versions
from benchmarks.path.compared import compared
from benchmarks.path.load import h2load, wrk
from benchmarks.result import Outcome

__all__ = ["take"]

_PROTOCOLS = {"HTTP/1.1": wrk, "HTTP/2": h2load}


def take() -> Outcome:
    with both() as (_, ours, peer):
        outcomes = {
            name: compared(rounds(ours, peer, load), "router_us", PEER, versions=versions())
            for name, load in _PROTOCOLS.items()
        }
    worse = max(outcomes.values(), key=lambda outcome: outcome.value)
    values = {
        name: {"ratio": outcome.value, "ours_us": outcome.ours, "peer_us": outcome.peer}
        for name, outcome in outcomes.items()
    }
    return dataclasses.replace(worse, also={**worse.also, **values})
