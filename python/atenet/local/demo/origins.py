"""The demo's own corner of the internet: three servers and the name server that knows them, on one loopback address."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from atenet.identity import Authority, Usage
from atenet.identity.credential import Want, issue
from atenet.identity.pem import certificate_pem

__all__ = ["API", "DENIED", "PINNED", "PLAIN", "RAW_PORT", "Origins", "running_origins"]

_DOMAIN = "demo.example"
PLAIN, API, PINNED, DENIED = (f"{n}.{_DOMAIN}" for n in ("plain", "api", "pinned", "denied"))
RAW_PORT = 2222
_A = 1


@dataclass
class Origins:
    """What runs, and what arrived. `roots`: who vouches for the servers; `pinned`: their certificate's SHA-256."""

    address: str
    roots: Path
    pinned: str
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # host, its fields
    raw_connections: int = 0
    questions: list[str] = field(default_factory=list)

    @property
    def name_server(self) -> str:
        return f"{self.address}:53"


@contextmanager
def running_origins(address: str, directory: Path) -> Iterator[Origins]:
    """HTTP on :80, TLS on :443, something else on RAW_PORT, names on :53; files go to `directory`."""
    authority = Authority.create("demo-origins")
    roots, bundle = directory / "origins.pem", directory / "origin.pem"
    roots.write_bytes(certificate_pem(authority.certificate))
    bundle.write_bytes(issue(Want(None, (API, PINNED, DENIED), (Usage.SERVER,)), authority))
    bundle.chmod(0o600)
    leaf = x509.load_pem_x509_certificates(bundle.read_bytes())[0]
    shown = hashlib.sha256(leaf.public_bytes(Encoding.DER)).hexdigest()
    origins = Origins(address, roots, shown)
    with ExitStack() as stack:
        for server in (_web(origins, 80), _secure(origins, bundle), _raw(origins), _names(origins)):
            stack.enter_context(_serving(server))
        yield origins


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _web(origins: Origins, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fields = {name.lower(): value for name, value in self.headers.items()}
            origins.requests.append((fields.get("host", ""), fields))
            # A digest, so that the credential itself never travels back.
            sent = fields.get("authorization", "").encode()
            body = json.dumps({"authorization_sha256": hashlib.sha256(sent).hexdigest()}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The checks say what arrived."""

    return ThreadingHTTPServer((origins.address, port), Handler)


def _secure(origins: Origins, bundle: Path) -> ThreadingHTTPServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bundle)
    server = _web(origins, 443)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    return server


def _raw(origins: Origins) -> socketserver.TCPServer:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            origins.raw_connections += 1
            self.request.sendall(b"nobody should read this\n")

    return socketserver.ThreadingTCPServer((origins.address, RAW_PORT), Handler)


def _names(origins: Origins) -> socketserver.UDPServer:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            query, asking = self.request
            origins.questions.append(_name(query))
            asking.sendto(_answer(query, origins.address), self.client_address)

    return socketserver.ThreadingUDPServer((origins.address, 53), Handler)


def _name(query: bytes) -> str:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
        at += 1 + query[at]
    return ".".join(labels)


def _answer(query: bytes, address: str) -> bytes:
    """Every name of the domain leads here; no other name exists."""
    end = query.index(0, 12) + 5
    (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
    known = _name(query).endswith(f".{_DOMAIN}")
    count = int(known and kind == _A)
    head = query[:2] + struct.pack("!5H", 0x8180 if known else 0x8183, 1, count, 0, 0)
    record = struct.pack("!3HIH", 0xC00C, _A, 1, 60, 4) + ipaddress.IPv4Address(address).packed
    return head + query[12:end] + record * count
