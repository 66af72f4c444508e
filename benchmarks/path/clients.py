"""Client connections that wait: opened first, asked later, answered whenever it suits the router."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.path.identity import ROUTER_NAME

__all__ = ["answers", "ask", "opened", "request"]

_READ = 65536
_OK = b"HTTP/1.1 200"


def request(actor: str) -> bytes:
    """A GET for the actor, on a connection that stays open."""
    return f"GET / HTTP/1.1\r\nhost: bench\r\nate-target-actor: {actor}\r\n\r\n".encode()


@contextmanager
def opened(address: str, count: int, *, roots: Path | None = None) -> Iterator[list[socket.socket]]:
    """So many connections to `host:port`, over TLS if there are roots to verify with."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(roots)) if roots else None
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection((host, int(port)), timeout=30)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context:
                connection = context.wrap_socket(connection, server_hostname=ROUTER_NAME)
            connections.append(connection)
        yield connections
    finally:
        for connection in connections:
            connection.close()


def ask(connections: Sequence[socket.socket], actor: str) -> None:
    """Sends one request on each."""
    text = request(actor)
    for connection in connections:
        connection.sendall(text)


def answers(connections: Sequence[socket.socket], limit: float = 60.0) -> float:
    """Waits for an answer on each; returns when the last one came, on the monotonic clock.

    Raises RuntimeError when one is missing or is no 200.
    """
    poller, waiting = select.epoll(), {c.fileno(): c for c in connections}
    for number in waiting:
        poller.register(number, select.EPOLLIN)
    deadline, last = time.monotonic() + limit, 0.0
    while waiting:
        ready = poller.poll(max(0.0, deadline - time.monotonic()))
        if not ready:
            raise RuntimeError(f"{len(waiting)} answers are missing after {limit:g} s")
        for number, _ in ready:
            text = waiting[number].recv(_READ)
            last = time.monotonic()
            if not text.startswith(_OK):
                raise RuntimeError(f"not the actor's answer: {text[:200]!r}")
            poller.unregister(number)
            del waiting[number]
    poller.close()
    return last
