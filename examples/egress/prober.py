#!/usr/bin/env python3
"""An actor that dials out when it is told to, and tells what it saw: what the demo asks about egress.

POST a JSON object to port 80: `{"do": "fetch", "url": ...}` and the like, see the functions below. Standard library
only; whom to trust it learns from SSL_CERT_FILE, as any Python program does.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import ssl
import struct
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LIMIT = 10.0
RESOLV_CONF = Path("/etc/resolv.conf")

Told = dict[str, Any]


def fetch(url: str, headers: dict[str, str] | None = None) -> Told:
    """What any program would do."""
    asked = urllib.request.Request(url, headers=headers or {})  # noqa: S310 - it is the demo's to say
    try:
        with urllib.request.urlopen(asked, timeout=LIMIT) as answer:  # noqa: S310
            return _answer(answer)
    except urllib.error.HTTPError as refused:
        return _answer(refused)


def at(address: str, host: str, server_name: str | None = None) -> Told:
    """A request for `host` to an address of one's own choice, in TLS for `server_name` if there is one."""
    ip, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(ip, int(port), timeout=LIMIT)
    plain = socket.create_connection((ip, int(port)), LIMIT)
    connection.sock = (
        plain if server_name is None else _tls().wrap_socket(plain, server_hostname=server_name)
    )
    try:
        connection.request("GET", "/", headers={"Host": host})
        return _answer(connection.getresponse())
    finally:
        connection.close()


def certificate(host: str) -> Told:
    """The fingerprint of what the far end shows for this name."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((host, 443), LIMIT)
    with context.wrap_socket(plain, server_hostname=host) as secure:
        shown = secure.getpeercert(binary_form=True) or b""
    return {"sha256": hashlib.sha256(shown).hexdigest()}


def dial(address: str, say: str = "") -> Told:
    """Bytes that are neither HTTP nor TLS."""
    ip, _, port = address.rpartition(":")
    with socket.create_connection((ip, int(port)), LIMIT) as plain:
        plain.sendall(say.encode())
        return {"received": plain.recv(100).decode(errors="replace")}


def resolve(name: str) -> Told:
    """Asks the one name server that the sandbox has."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(LIMIT)
        asking.sendto(question, (_name_server(), 53))
        answer = asking.recv(1500)
    return {"code": answer[3] & 15, "answers": struct.unpack("!H", answer[6:8])[0]}


def look(variables: list[str]) -> Told:
    """What the actor knows by itself."""
    return {
        "environment": dict(os.environ),
        "wanted": {name: os.environ.get(name) for name in variables},
    }


def _name_server() -> str:
    lines = (line.split() for line in RESOLV_CONF.read_text().splitlines())
    return next(words[1] for words in lines if words[:1] == ["nameserver"])


def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _answer(answer: Any) -> Told:
    return {
        "status": answer.status,
        "reason": answer.headers.get("ate-reason"),
        "body": answer.read(10_000).decode(errors="replace"),
    }


DOINGS = {each.__name__: each for each in (fetch, at, certificate, dial, resolve, look)}


class Prober(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            told = DOINGS[asked.pop("do")](**asked)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            told = {"error": type(reason).__name__, "text": str(reason)}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1]) if len(sys.argv) > 1 else 80), Prober).serve_forever()
