#!/usr/bin/env python3
"""A counter that holds its number in memory alone: each POST adds one, each GET tells.

Standard library only. That its number is still there after it slept, on another worker, is the
gvisor class's doing. Who it is it reads when it is asked, not when it starts: it may have been
started as nobody in particular, and gone on as this actor (see docs/snapshots.md).
"""

from __future__ import annotations

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STARTED = time.time()
BALLAST = os.urandom(int(os.environ.get("BALLAST", "0")))


class Counter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one segment
    count = 0  # of the class: one for all requests

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        Counter.count += 1
        self._answer()

    def _answer(self) -> None:
        me = Path("/run/ate/actor-id")
        told = {
            "count": Counter.count,
            "started": STARTED,
            "actor": me.read_text() if me.exists() else "",
        }
        body = json.dumps(told).encode() + b"\n"
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


if __name__ == "__main__":
    Server(("", int(os.environ.get("PORT", "80"))), Counter).serve_forever()
