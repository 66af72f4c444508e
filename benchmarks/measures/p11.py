"""P-11: what our decision costs on Envoy: requests per second, over the same Envoy whose ext_proc answers a constant.

Ours asks the real control plane (SQLite) for each request, of many actors in turn, so that hardly any two share a call.
Also: the same with one actor, whose requests in flight share calls; warm ResumeActor calls of that control plane by
themselves; memory of the process beside Envoy, and what it uses when idle.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from pathlib import Path
from typing import Any

from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.rpc import mtls_channel

from benchmarks.path.against_envoy import versions
from benchmarks.path.ateapi import ateapi
from benchmarks.path.compared import compared
from benchmarks.path.envoy_dataplane import constant_side, our_side
from benchmarks.path.identity import API_NAME
from benchmarks.path.load import wrk
from benchmarks.path.ours import worker, worker_address
from benchmarks.path.program import Program
from benchmarks.path.sides import Side
from benchmarks.path.turns import Numbers, bench, in_turns, median, observe
from benchmarks.path.worker import actor
from benchmarks.result import Outcome

__all__ = ["take"]

_ACTORS = 64
_SECONDS = 3
# What is only seen besides takes fewer rounds.
_FEWER = 3
_CALLERS, _CALL_SECONDS = 64, 3.0
_IDLE_SECONDS = 10.0


def take() -> Outcome:
    busy = os.getloadavg()[0]
    with bench() as made:
        ip = worker_address()
        far = made.stack.enter_context(
            worker(made.root, made.identity, ip, made.origin.address, _ACTORS)
        )
        plane = made.stack.enter_context(ateapi(made.root, made.identity, ip, _ACTORS))
        api = (made.root / "ateapi.address").read_text()
        ours = made.stack.enter_context(our_side(made.root, made.identity, api, far))
        peer = made.stack.enter_context(constant_side(made.root, made.identity, api, ip, far))
        idle = _idle(ours)
        for side in (ours, peer):
            wrk(f"https://{side.https}/", seconds=1, actors=_ACTORS)
        calls = asyncio.run(_calls(made.root, api))
        spent: list[float] = []

        def ours_observed() -> Numbers:
            before = plane.cpu_seconds
            numbers = _observed(ours)
            spent.append((plane.cpu_seconds - before) / _SECONDS)
            return numbers

        seen = in_turns([ours_observed, lambda: _observed(peer)])
        alone = in_turns([lambda: _observed(ours, 1), lambda: _observed(peer, 1)], _FEWER)
        resident = _beside(ours.router)
    also = {
        # What else the machine had to do: it slows ours more, which takes more of a core.
        "load average before": busy,
        "actors asked for in turn": _ACTORS,
        "one actor": {
            "ours": median(alone, 0, "rps"),
            "peer": median(alone, 1, "rps"),
            "ratio": statistics.median(ours["rps"] / peer["rps"] for ours, peer in alone),
        },
        "warm ResumeActor, callers beside ateapi on the load's cores": calls,
        "ateapi's own CPU while ours runs, cores": statistics.median(spent),
        "memory of the process beside Envoy, MiB": resident,
        "idle CPU of that process and of Envoy, share of a core": idle,
    }
    return compared(seen, "rps", "constant ext_proc", also=also, versions=versions())


def _observed(side: Side, actors: int = _ACTORS) -> Numbers:
    return observe(side, lambda: wrk(f"https://{side.https}/", seconds=_SECONDS, actors=actors))


def _idle(side: Side) -> float:
    before, began = side.router.cpu_seconds, time.monotonic()
    time.sleep(_IDLE_SECONDS)  # noqa: TID251 - idleness is what is measured
    return (side.router.cpu_seconds - before) / (time.monotonic() - began)


def _beside(router: Program) -> float:
    """Without Envoy, which is its child."""
    pages = int(Path(f"/proc/{router.pid}/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


async def _calls(root: Path, api: str) -> dict[str, Any]:
    """Warm ResumeActor calls from Python callers, as many at a time as wrk has connections."""
    local = LocalIdentity(root / "identity")
    took: list[float] = []
    async with mtls_channel(
        api,
        credential=local.credential("router", spiffe.ROUTER_ID),
        roots=local.trust("service-dns"),
        server_name=API_NAME,
    ) as channel:
        stub = pb_grpc.ControlStub(channel)
        ends = time.monotonic() + _CALL_SECONDS

        async def caller(number: int) -> None:
            atespace, name = actor(number % _ACTORS).split("/")
            request = pb.ResumeActorRequest(actor=pb.ObjectRef(atespace=atespace, name=name))
            while time.monotonic() < ends:
                began = time.perf_counter()
                await stub.ResumeActor(request)
                took.append(time.perf_counter() - began)

        await asyncio.gather(*(caller(number) for number in range(_CALLERS)))
    return {
        "calls_per_second": len(took) / _CALL_SECONDS,
        "p99_ms": statistics.quantiles(took, n=100)[98] * 1000,
        "callers": _CALLERS,
    }
