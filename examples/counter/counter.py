#!/usr/bin/env python3
"""A counter that remembers: each POST adds one and stores it in $DATA, each GET tells.

Standard library only. It is an ordinary server on port 80; that it sleeps and moves between
workers is nothing it needs to know.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILE = Path(os.environ.get("DATA", "/data")) / "count"
ONE_AT_A_TIME = threading.Lock()


def read() -> int:
    return int(FILE.read_text()) if FILE.exists() else 0


def add() -> int:
    """Stored whole or not at all: a crash between two requests loses nothing that was answered."""
    with ONE_AT_A_TIME:
        count = read() + 1
        scratch = FILE.with_suffix(".new")
        with scratch.open("w") as file:
            file.write(str(count))
            file.flush()
            os.fsync(file.fileno())
        scratch.rename(FILE)
        return count


class Counter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one segment

    def do_GET(self) -> None:
        self._answer(read())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer(add())

    def _answer(self, count: int) -> None:
        body = json.dumps({"count": count}).encode() + b"\n"
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Quiet: one line a request would be most of what it does."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        # The base class asks DNS for this host's name; a sandbox has none to ask.
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "counter", int(os.environ.get("PORT", "80"))

    def handle_error(self, request: object, client_address: object) -> None:
        """A kept-alive connection that its other end resets is no fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


if __name__ == "__main__":
    server = Server(("", int(os.environ.get("PORT", "80"))), Counter)
    print(f"counter at {read()}, serving", flush=True)
    server.serve_forever()
