"""P-02: the warm path over HTTPS with HTTP/2 clients, requests per second against two Envoys."""

from __future__ import annotations

from benchmarks.path.against_envoy import PEER, both, rounds, versions
from benchmarks.path.compared import compared
from benchmarks.path.load import h2load
from benchmarks.result import Outcome

__all__ = ["take"]


def take() -> Outcome:
    with both() as (_, ours, peer):
        return compared(rounds(ours, peer, h2load), "rps", PEER, versions=versions())
