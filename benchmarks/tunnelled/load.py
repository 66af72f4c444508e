"""h2load over HTTP/1.1 with TLS, to an address that its URL does not name."""

from __future__ import annotations

import os
import subprocess

from benchmarks.path.cores import LOAD
from benchmarks.path.load import Load, h2load_said
from benchmarks.path.program import on_cores
from benchmarks.tunnelled.origin import NAME

__all__ = ["CONNECTIONS", "requests"]

CONNECTIONS = 32


def requests(
    port: int,
    origin_port: int,
    path: str = "/",
    *,
    seconds: int = 3,
    connections: int = CONNECTIONS,
) -> Load:
    """Keep-alive, a request in flight on each connection, to `port` of 127.0.0.1. Raises RuntimeError if one failed."""
    size = [f"-c{connections}", f"-D{seconds}", "--warm-up-time=1"]
    url = f"https://{NAME}:{origin_port}{path}"
    command = ["h2load", "-t1", "--h1", *size, f"--connect-to=127.0.0.1:{port}", url]
    before = os.times()
    done = subprocess.run(
        [*on_cores(LOAD), *command], capture_output=True, text=True, check=False, timeout=120
    )
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return h2load_said(done.stdout, used / (after.elapsed - before.elapsed))
