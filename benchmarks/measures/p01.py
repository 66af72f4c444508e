"""P-01: the warm path over HTTPS with HTTP/1.1 keep-alive, requests per second against two Envoys.

Also with 1 KiB bodies, and with 1 000 idle connections beside the busy ones.
"""

from __future__ import annotations

from benchmarks.path.against_envoy import PEER, both, rounds, versions
from benchmarks.path.clients import answers, ask, opened
from benchmarks.path.compared import compared
from benchmarks.path.load import wrk
from benchmarks.path.turns import median
from benchmarks.path.worker import actor
from benchmarks.result import Outcome

__all__ = ["take"]

_IDLE = 1000
# What is only seen besides takes fewer rounds.
_FEWER = 3


def take() -> Outcome:
    with both() as (made, ours, peer):
        direct = wrk(f"http://{made.origin.address}/")
        main = rounds(ours, peer, wrk)
        kibibyte = rounds(ours, peer, wrk, "/1k", _FEWER)
        with (
            opened(ours.https, _IDLE, roots=made.identity.services) as first,
            opened(peer.https, _IDLE, roots=made.identity.services) as second,
        ):
            for idle in (first, second):
                ask(idle, actor(0))
                answers(idle)
            beside = rounds(ours, peer, wrk, runs=_FEWER)
    also = {
        "generator straight to the origin, on the load's cores": direct.rps,
        "1 KiB bodies": _pair(kibibyte),
        f"{_IDLE} idle connections": _pair(beside),
    }
    return compared(main, "rps", PEER, also=also, versions=versions())


def _pair(seen: list[list[dict[str, float]]]) -> dict[str, float]:
    ours, peer = (median(seen, at, "rps") for at in (0, 1))
    return {"ours": ours, "peer": peer, "ratio": ours / peer}
