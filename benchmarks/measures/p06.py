"""P-06: answers of 1 MiB over HTTPS, MiB per second against HAProxy with an mTLS hop.

Also uploads of 1 MiB, and how far memory had grown after all of it.
"""

from __future__ import annotations

from benchmarks.machine import said
from benchmarks.path.against_envoy import rounds, versions
from benchmarks.path.compared import compared
from benchmarks.path.haproxies import haproxy_path
from benchmarks.path.load import Load, wrk
from benchmarks.path.ours import our_path
from benchmarks.path.turns import bench, median
from benchmarks.result import Outcome

__all__ = ["take"]

_PEER = "two HAProxies"
_CONNECTIONS = 16
_BODY = 1 << 20


def take() -> Outcome:
    with bench() as made:
        ours = made.stack.enter_context(our_path(made.root, made.identity, made.origin.address))
        peer = made.stack.enter_context(haproxy_path(made.root, made.identity, made.origin.address))
        before = ours.router.resident_kib, ours.worker.resident_kib
        down = rounds(ours, peer, _download, "/1m")
        up = rounds(ours, peer, _upload)
        after = ours.router.resident_kib, ours.worker.resident_kib
    rates = [median(up, at, "rps") for at in (0, 1)]
    also = {
        "uploads, MiB per second": {
            "ours": rates[0],
            "peer": rates[1],
            "ratio": rates[0] / rates[1],
        },
        "router's memory before and after, KiB": [before[0], after[0]],
        "atunnel's memory before and after, KiB": [before[1], after[1]],
    }
    haproxy = {"haproxy": said(["/usr/sbin/haproxy", "-v"])}
    return compared(down, "mib_per_second", _PEER, also=also, versions={**versions(), **haproxy})


def _download(url: str) -> Load:
    return wrk(url, connections=_CONNECTIONS)


def _upload(url: str) -> Load:
    return wrk(url, connections=_CONNECTIONS, body=_BODY)
