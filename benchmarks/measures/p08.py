"""P-08: requests per second of a router that remembers 100 000 assignments, against one that remembers 1 000.

Two routers before the same worker; both get the same requests, over the 1 000 actors that both know. The others are
remembered because somebody asked for them, and live on a worker that never answers.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

from benchmarks.path.against_envoy import versions
from benchmarks.path.clients import opened, request
from benchmarks.path.compared import compared
from benchmarks.path.gate import gate
from benchmarks.path.load import wrk
from benchmarks.path.metrics import sample
from benchmarks.path.ours import router, worker, worker_address
from benchmarks.path.program import until
from benchmarks.path.sides import Side
from benchmarks.path.turns import Bench, Numbers, bench, in_turns, observe
from benchmarks.path.worker import actor
from benchmarks.result import Outcome

__all__ = ["take"]

_FEW, _MANY = 1_000, 100_000
# Requests under way while the cache is filled.
_BATCH = 250
_STALE = "atenet_router_stale_retries_total"
# A worker that never answers is waited for, so that nothing that was remembered is forgotten.
_PATIENT = ["--worker-handshake-timeout=3600000ms"]
_CALLS = "atenet_router_resume_calls_total"


def take() -> Outcome:
    with bench() as made, ExitStack() as stack:
        few, many = _routers(made, stack)

        def load(side: Side) -> Numbers:
            # Connections to actors live for seconds only: each run begins with its own.
            wrk(f"https://{side.https}/", seconds=1, actors=_FEW)
            return observe(side, lambda: wrk(f"https://{side.https}/", actors=_FEW))

        before = many.router.resident_kib
        for side in (many, few):
            load(side)
        _remember(many, range(_FEW, _MANY))
        after = many.router.resident_kib
        seen = in_turns([lambda: load(many), lambda: load(few)])
        for side, count in ((few, _FEW), (many, _MANY)):
            asked, forgotten = sample(side.stats, _CALLS), sample(side.stats, _STALE)
            if asked != count or forgotten:
                raise RuntimeError(
                    f"{asked:.0f} of {count} were asked for, {forgotten:.0f} forgotten"
                )
    also = {"bytes an assignment": (after - before) * 1024 / _MANY}
    return compared(seen, "rps", f"{_FEW} assignments", also=also, versions=versions())


def _routers(made: Bench, stack: ExitStack) -> tuple[Side, Side]:
    ip = worker_address()
    far = stack.enter_context(worker(made.root, made.identity, ip, made.origin.address, _FEW))
    silent = socket.create_server((worker_address(), 8443), backlog=1024)
    stack.enter_context(silent)
    known = {actor(number) for number in range(_FEW)}
    control = stack.enter_context(
        gate(made.identity, lambda name: ip if name in known else silent.getsockname()[0])
    )
    control.let_through()
    sides = []
    for name in ("few", "many"):
        root = made.root / name
        root.mkdir()
        near, bound = stack.enter_context(
            router(root, made.identity, control.address, cache_ttl="1h", flags=_PATIENT)
        )
        sides.append(Side(name, bound["https"], bound["http"], near, far, bound["stats"]))
    return sides[0], sides[1]


def _remember(side: Side, numbers: range) -> None:
    """Asks for each actor once and leaves: the look-up goes on and its answer is remembered."""
    for start in range(numbers.start, numbers.stop, _BATCH):
        batch = range(start, min(start + _BATCH, numbers.stop))
        with opened(side.http, len(batch)) as clients:
            for client, number in zip(clients, batch, strict=True):
                client.sendall(request(actor(number)))
            until(lambda end=batch.stop: sample(side.stats, _CALLS) >= end, "the cache fills")  # type: ignore[misc]
