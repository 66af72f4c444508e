"""Load through egress tunnels: requests one after the other on each of many, by one thread that does nothing else.

Run as a program with a plan in JSON; prints what it saw. A tunnel is opened, and TLS inside it agreed, before the time
begins. No well-kept generator speaks HTTP inside a CONNECT inside mutual TLS.
"""

from __future__ import annotations

import json
import selectors
import socket
import ssl
import sys
import time
from dataclasses import dataclass, field
from typing import Any

__all__ = ["main"]

_CHUNK = 65536
_BLANK = b"\r\n\r\n"


@dataclass
class Inside:
    """TLS inside a tunnel, on memory."""

    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO
    tls: ssl.SSLObject


@dataclass
class Wire:
    """One tunnel, and when its request was sent."""

    outer: ssl.SSLSocket
    inside: Inside | None
    sent: float = 0.0
    got: bytearray = field(default_factory=bytearray)

    def send(self, data: bytes) -> None:
        if self.inside is not None:
            self.inside.tls.write(data)
            data = self.inside.outgoing.read()
        self.outer.sendall(data)

    def read(self) -> bytes:
        """What has come, perhaps nothing."""
        data = self.outer.recv(_CHUNK)
        if not data:
            raise SystemExit("the gateway ended a tunnel")
        if self.inside is None:
            return data
        self.inside.incoming.write(data)
        try:
            return self.inside.tls.read(_CHUNK)
        except ssl.SSLWantReadError:
            return b""


def main(plan: dict[str, Any]) -> dict[str, float]:
    """`plan`: gateway, server_name, roots, credential, target, host, inside_roots (or null), tunnels, seconds."""
    request = f"GET / HTTP/1.1\r\nhost: {plan['host']}\r\n\r\n".encode()
    outer = ssl.create_default_context(cafile=plan["roots"])
    outer.load_cert_chain(plan["credential"])
    wires = [_open(plan, outer) for _ in range(plan["tunnels"])]
    ready = selectors.DefaultSelector()
    for wire in wires:
        ready.register(wire.outer, selectors.EVENT_READ, wire)
    began, used = time.perf_counter(), time.process_time()
    for wire in wires:
        _ask(wire, request)
    took: list[float] = []
    while time.perf_counter() - began < plan["seconds"]:
        for key, _ in ready.select(1):
            _hear(key.data, request, took)
    seconds = time.perf_counter() - began
    took.sort()
    return {
        "rps": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
        "generator_cores": (time.process_time() - used) / seconds,
    }


def _ask(wire: Wire, request: bytes) -> None:
    wire.sent = time.perf_counter()
    wire.send(request)


def _hear(wire: Wire, request: bytes, took: list[float]) -> None:
    """An answer that is whole is counted, and the next question asked."""
    while True:
        wire.got += wire.read()
        if not wire.outer.pending():
            break
    head, blank, body = wire.got.partition(_BLANK)
    if not blank:
        return
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the answer was {bytes(head[:200])!r}")
    if len(body) < _length(head):
        return
    took.append(time.perf_counter() - wire.sent)
    wire.got.clear()
    _ask(wire, request)


def _length(head: bytearray) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0])


def _open(plan: dict[str, Any], outer: ssl.SSLContext) -> Wire:
    host, _, port = plan["gateway"].rpartition(":")
    plain = socket.create_connection((host, int(port)), 20)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = outer.wrap_socket(plain, server_hostname=plan["server_name"])
    tls.sendall(f"CONNECT {plan['target']} HTTP/1.1\r\nhost: {plan['target']}\r\n\r\n".encode())
    answer = b""
    while _BLANK not in answer:
        answer += tls.recv(_CHUNK)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the CONNECT was answered {answer[:200]!r}")
    return Wire(tls, _inside(plan, tls) if plan["inside_roots"] else None)


def _inside(plan: dict[str, Any], outer: ssl.SSLSocket) -> Inside:
    context = ssl.create_default_context(cafile=plan["inside_roots"])
    context.set_alpn_protocols(["http/1.1"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=plan["host"])
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            outer.sendall(outgoing.read())
            incoming.write(outer.recv(_CHUNK))
        else:
            outer.sendall(outgoing.read())
            return Inside(incoming, outgoing, tls)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
