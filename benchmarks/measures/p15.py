"""P-15: requests per second through interception against an Envoy that is set up to do the same.

Envoy ends the same mTLS CONNECT, shows one leaf that it was given for the name, and verifies the origin; it knows no
policy, so it asks nobody.
"""

from __future__ import annotations

from benchmarks.path.against_envoy import versions
from benchmarks.path.compared import compared
from benchmarks.result import Outcome
from benchmarks.tunnelled.capture import Capture
from benchmarks.tunnelled.compare import Side, scene, turns
from benchmarks.tunnelled.peers import envoy

__all__ = ["take"]


def take() -> Outcome:
    with scene("https") as made:
        program, port = envoy(made.root, made.identity, made.origin)
        made.stack.enter_context(program)
        near = Capture(made.root, "capture-peer", ("127.0.0.1", port), made.target, made.tunnel)
        made.stack.enter_context(near)
        peer = Side("Envoy", near.port, lambda: program.cpu_seconds)
        rounds = turns(made, peer)
    return compared(rounds, "rps", peer.name, versions=versions())
