"""P-16: TLS that is passed through, MiB per second of 1 MiB answers, against HAProxy as a plain TCP relay.

Ours goes through the worker's mTLS tunnel, which the relay does without. To make a MiB and to take it costs generator,
origin and the tunnel's other end four times what either relay needs, so on their half of the machine they would be what
limits: each relay gets a tenth of its core, and `load_cores_used` says how much of theirs the others then used. What
both do without that bound is told besides.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.machine import said
from benchmarks.path.compared import compared
from benchmarks.path.share import share
from benchmarks.path.turns import Numbers
from benchmarks.result import Outcome
from benchmarks.tunnelled.compare import Side, scene, turns
from benchmarks.tunnelled.peers import haproxy

__all__ = ["take"]

_CONNECTIONS = 16
_CORES = 0.1
_FEWER = 3


def take() -> Outcome:
    with scene("tls_passthrough") as made:
        program, port = haproxy(made.root, made.origin)
        made.stack.enter_context(program)
        peer = Side("HAProxy, TCP mode", port, lambda: program.cpu_seconds)
        with share([made.gateway.process.pid, program.pid], _CORES):
            rounds = turns(made, peer, "/1m", connections=_CONNECTIONS)
        unbound = turns(made, peer, "/1m", runs=_FEWER, connections=_CONNECTIONS)
    also = {
        "cores for either relay": _CORES,
        "without that bound, where generator and origin limit": _told(unbound, peer.name),
    }
    versions = {"haproxy": said(["/usr/sbin/haproxy", "-v"])}
    return compared(rounds, "mib_per_second", peer.name, also=also, versions=versions)


def _told(rounds: Sequence[list[Numbers]], peer: str) -> dict[str, dict[str, float]]:
    """Medians of both sides."""
    keys = ("mib_per_second", "cores", "load_cores_used")
    return {
        name: {key: statistics.median(sides[at][key] for sides in rounds) for key in keys}
        for at, name in enumerate(("atenet", peer))
    }
