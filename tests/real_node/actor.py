"""What actors of the check run: a counter that keeps its number in a file, and beside it one in memory
alone. It asks origins when told to."""

from __future__ import annotations

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

FILE = Path("/data/count")
# Where the gvisor class says who it is.
ME = Path("/run/ate/actor-id")
STARTED = time.time()


def fetch(url: str) -> dict[str, object]:
    try:
        with urlopen(url, timeout=20) as answer:
            return {"status": answer.status, "body": answer.read().decode()}
    except HTTPError as error:
        return {"status": error.code, "reason": error.headers.get("ate-reason")}
    except (URLError, OSError) as error:
        return {"status": 0, "body": str(error)}


class Actor(BaseHTTPRequestHandler):
    asked = 0  # of the class: one for all requests

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query).get("fetch")
        self.answer(fetch(asked[0]) if asked else {"count": self.count()})

    def do_POST(self) -> None:
        FILE.write_text(str(self.count() + 1))
        Actor.asked += 1
        self.answer(
            {
                "count": self.count(),
                "asked": Actor.asked,
                "started": STARTED,
                "uid": os.getuid(),
                "actor": ME.read_text() if ME.exists() else "",
            }
        )

    def count(self) -> int:
        return int(FILE.read_text()) if FILE.exists() else 0

    def answer(self, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer(("", 80), Actor).serve_forever()
