"""P-16: TLS that is passed through, MiB per second of 1 MiB answers, against HAProxy as a plain TCP relay.

Ours goes through the worker's mTLS tunnel, which the relay does without: the generator's half of the machine then also
carries the tunnel's other end.
"""

from __future__ import annotations

from benchmarks.machine import said
from benchmarks.path.compared import compared
from benchmarks.result import Outcome
from benchmarks.tunnelled.compare import Side, scene, turns
from benchmarks.tunnelled.peers import haproxy

__all__ = ["take"]

_CONNECTIONS = 16


def take() -> Outcome:
    with scene("tls_passthrough") as made:
        program, port = haproxy(made.root, made.origin)
        made.stack.enter_context(program)
        peer = Side("HAProxy, TCP mode", port, lambda: program.cpu_seconds)
        rounds = turns(made, peer, "/1m", connections=_CONNECTIONS)
    versions = {"haproxy": said(["/usr/sbin/haproxy", "-v"])}
    return compared(rounds, "mib_per_second", peer.name, versions=versions)
