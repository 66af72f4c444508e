"""P-05: the router's resident memory with 1 000 idle HTTPS clients, against the Envoy router's, in KiB.

Each client has had one answer. Every run starts both routers anew, since memory does not come back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager

from benchmarks.path.against_envoy import PEER, versions
from benchmarks.path.clients import answers, ask, opened
from benchmarks.path.compared import compared
from benchmarks.path.envoys import envoy_path
from benchmarks.path.ours import our_path
from benchmarks.path.sides import Side
from benchmarks.path.turns import RUNS, Bench, Numbers, bench, in_turns
from benchmarks.path.worker import actor
from benchmarks.result import Outcome

__all__ = ["take"]

_CLIENTS = 1000

Path = Callable[..., AbstractContextManager[Side]]


def take() -> Outcome:
    with bench() as made:
        sides = [functools.partial(_run, made, path) for path in (our_path, envoy_path)]
        return compared(in_turns(sides, RUNS), "kib", PEER, versions=versions())


def _run(made: Bench, path: Path) -> Numbers:
    with path(made.root, made.identity, made.origin.address) as side:
        empty = side.router.resident_kib
        with opened(side.https, _CLIENTS, roots=made.identity.services) as clients:
            ask(clients, actor(0))
            answers(clients)
            router, worker = side.router.resident_kib, side.worker.resident_kib
        a_client = (router - empty) / _CLIENTS
        return {"kib": router, "before_kib": empty, "kib_a_client": a_client, "worker_kib": worker}
