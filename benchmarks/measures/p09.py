"""P-09: fifty requests at a sleeping actor, milliseconds from the end of its resume to the last answer.

Every run wakes another actor. Also with 1 024 requests, as many as may be parked; and how fast the resolver alone
answers from its cache, takes one more caller on board and wakes 1 024 of them.
"""

from __future__ import annotations

import statistics

from benchmarks.path.against_envoy import versions
from benchmarks.path.clients import answers, ask, opened
from benchmarks.path.compared import SETUP
from benchmarks.path.gate import Gate, gate
from benchmarks.path.metrics import sample
from benchmarks.path.ours import router, worker, worker_address
from benchmarks.path.program import until
from benchmarks.path.resolver import resolver_alone
from benchmarks.path.turns import bench
from benchmarks.path.worker import actor
from benchmarks.result import Outcome

__all__ = ["take"]

_FIFTY, _MANY = 50, 1024
_RUNS, _MANY_RUNS = 15, 5
_MISSES = "atenet_router_cache_misses_total"


def take() -> Outcome:
    with bench() as made:
        ip, actors = worker_address(), _RUNS + _MANY_RUNS + 1
        enter = made.stack.enter_context
        enter(worker(made.root, made.identity, ip, made.origin.address, actors))
        control = enter(gate(made.identity, lambda _: ip))
        _, bound = enter(router(made.root, made.identity, control.address))
        names = (actor(number) for number in range(actors))
        _burst(bound, control, next(names), _FIFTY)  # dials the worker
        runs = [{"value": _burst(bound, control, next(names), _FIFTY)} for _ in range(_RUNS)]
        many = [_burst(bound, control, next(names), _MANY) for _ in range(_MANY_RUNS)]
    value = statistics.median(run["value"] for run in runs)
    also = {
        "setup": SETUP,
        f"{_MANY} requests, each with a tunnel to open, ms": many,
        "the resolver alone": resolver_alone(),
    }
    return Outcome(value=value, ours=value, runs=runs, also=also, versions=versions())


def _burst(bound: dict[str, str], control: Gate, name: str, count: int) -> float:
    """Milliseconds from the resume's end to the last of `count` answers."""
    control.shut()
    before = sample(bound["stats"], _MISSES)
    with opened(bound["http"], count) as clients:
        ask(clients, name)
        until(lambda: sample(bound["stats"], _MISSES) >= before + count, "all wait")
        control.let_through()
        last = answers(clients)
    return (last - control.ended) * 1000
