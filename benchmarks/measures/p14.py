"""P-14: requests per second through interception against mitmproxy.

Ours ends the worker's mTLS besides and reads the policy for each decision; mitmproxy takes a plain CONNECT and lets
all pass.
"""

from __future__ import annotations

from benchmarks.machine import said
from benchmarks.path.compared import compared
from benchmarks.result import Outcome
from benchmarks.tunnelled.capture import Capture
from benchmarks.tunnelled.compare import Side, scene, turns
from benchmarks.tunnelled.peers import MITMDUMP, mitmproxy

__all__ = ["take"]


def take() -> Outcome:
    with scene("https") as made:
        program, port = mitmproxy(made.root, made.identity)
        made.stack.enter_context(program)
        plain = Capture(made.root, "capture-peer", ("127.0.0.1", port), made.target, None)
        made.stack.enter_context(plain)
        peer = Side("mitmproxy", plain.port, lambda: program.cpu_seconds)
        rounds = turns(made, peer)
    return compared(rounds, "rps", peer.name, versions=_versions())


def _versions() -> dict[str, str]:
    mitmproxy_says = said([str(MITMDUMP), "--version"]).splitlines()[0]
    return {"mitmproxy": mitmproxy_says, "h2load": said(["h2load", "--version"])}
