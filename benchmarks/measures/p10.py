"""P-10: what a parked request costs the router in memory, in KiB.

1 024 connections are open; then each asks for an actor for which there is no room. What memory grows by from the one
to the other is all that a waiting request needs, its connection's buffers included.
"""

from __future__ import annotations

import statistics

from benchmarks.path.against_envoy import versions
from benchmarks.path.clients import ask, opened
from benchmarks.path.compared import SETUP
from benchmarks.path.gate import gate
from benchmarks.path.metrics import sample
from benchmarks.path.ours import router, worker_address
from benchmarks.path.program import until
from benchmarks.path.turns import RUNS, Bench, bench
from benchmarks.path.worker import actor
from benchmarks.result import Outcome

__all__ = ["take"]

_PARKED = 1024
_ACTIVE = "atenet_router_parking_active"


def take() -> Outcome:
    with bench() as made:
        runs = [_run(made) for _ in range(RUNS)]
    value = statistics.median(run["value"] for run in runs)
    return Outcome(value=value, ours=value, runs=runs, also={"setup": SETUP}, versions=versions())


def _run(made: Bench) -> dict[str, float]:
    parking = {"budget": "60s", "max": _PARKED}
    with (
        gate(made.identity, lambda _: worker_address(), no_room=True) as control,
        router(made.root, made.identity, control.address, parking=parking) as (near, bound),
        opened(bound["http"], _PARKED) as clients,
    ):
        sample(bound["stats"], _ACTIVE)  # the page's own memory is no request's
        until(lambda: sample(bound["stats"], "atenet_router_client_connections") >= _PARKED, "open")
        before = near.resident_kib
        ask(clients, actor(0))
        until(lambda: sample(bound["stats"], _ACTIVE) == _PARKED, "all are parked")
        after = near.resident_kib
    return {"value": (after - before) / _PARKED, "before_kib": before, "after_kib": after}
