"""P-24: the egress gateway's resident memory with 1 000 concurrent tunnels, in MiB.

Each tunnel is a worker's own mTLS connection; a request through it has had an answer, so that the connection to the
origin is open as well. Every run starts the gateway anew, since memory does not come back.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import tempfile
from pathlib import Path

from atenet.proto import ateapi_pb2 as pb

from benchmarks.egress import Gateway, egress_gateway
from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 5
_TUNNELS = 1_000
_AT_ONCE = 50
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def take() -> Outcome:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (most, most)
    )  # both ends of each connection are here
    runs = [_run() for _ in range(_RUNS)]
    value = statistics.median(run["value"] for run in runs)
    return Outcome(value=value, ours=value, runs=runs)


def _run() -> dict[str, float]:
    policy = pb.EgressPolicy()
    rule = policy.rules.add().http
    rule.hostnames.append("*")
    rule.ports.all.SetInParent()
    with (
        tempfile.TemporaryDirectory(prefix="ate-bench-") as directory,
        egress_gateway(Path(directory), policy) as gateway,
    ):
        empty = gateway.resident_mib
        full = asyncio.run(_filled(gateway))
    return {"value": full, "empty_mib": empty, "kib_a_tunnel": (full - empty) * 1024 / _TUNNELS}


async def _filled(gateway: Gateway) -> float:
    """The memory with every tunnel open."""
    origin = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port: int = origin.sockets[0].getsockname()[1]
    writers = []
    for _ in range(_TUNNELS // _AT_ONCE):
        opened = (_tunnel(gateway, port) for _ in range(_AT_ONCE))
        writers += await asyncio.gather(*opened)
    full = gateway.resident_mib
    for writer in writers:
        writer.transport.abort()
    origin.close()
    return full


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(_ANSWER)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


async def _tunnel(gateway: Gateway, port: int) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection(
        *gateway.address, ssl=gateway.tls, server_hostname=gateway.server_name
    )
    for asked in (
        f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    ):
        writer.write(asked.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the gateway answered {answer!r}")
    return writer
