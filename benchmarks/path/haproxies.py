"""The peer for bulk: HAProxy in front, HAProxy at the worker, mTLS between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.path.cores import PATH, THREADS
from benchmarks.path.identity import BenchIdentity
from benchmarks.path.program import Program, free_port
from benchmarks.path.sides import Side

__all__ = ["haproxy_path"]

_COMMON = """
global
    nbthread {threads}
    maxconn 8000
    tune.bufsize 65536
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode http
    http-reuse always
    timeout connect 5s
    timeout client 300s
    timeout server 300s
"""

_ROUTER = """
frontend https
    bind 127.0.0.1:{https} ssl crt {edge} alpn h2,http/1.1
    bind 127.0.0.1:{http}
    default_backend worker
backend worker
    server worker 127.0.0.1:{tunnel} ssl verify required verifyhost {name} sni str({name}) crt {router} ca-file {pods}
"""

_WORKER = """
frontend tunnel
    bind 127.0.0.1:{tunnel} ssl crt {worker} verify required ca-file {pods}
    default_backend origin
backend origin
    server origin {origin}:80
"""


@contextmanager
def haproxy_path(root: Path, identity: BenchIdentity, origin: str) -> Iterator[Side]:
    """Both HAProxies, started and listening."""
    ports = {name: free_port() for name in ("https", "http", "tunnel")}
    values = {
        **ports,
        "threads": THREADS,
        "edge": identity.edge,
        "router": identity.router,
        "worker": identity.worker,
        "pods": identity.pods,
        "origin": origin,
        "name": "bench.default.pod.cluster.local",
    }
    with ExitStack() as stack:
        programs = []
        for name, text, port in (("worker", _WORKER, "tunnel"), ("router", _ROUTER, "https")):
            file = root / f"haproxy-{name}.cfg"
            file.write_text((_COMMON + text).format(**values))
            program = Program(
                f"haproxy {name}", ["/usr/sbin/haproxy", "-db", "-f", file],
                cores=PATH, log=root / f"haproxy-{name}.log",
            )  # fmt: skip
            stack.enter_context(program).listens_on(ports[port])
            programs.append(program)
        worker, router = programs
        https, http = (f"127.0.0.1:{ports[name]}" for name in ("https", "http"))
        yield Side("two HAProxies", https, http, router, worker)
