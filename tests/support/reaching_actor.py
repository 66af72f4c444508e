"""An actor that does what a test says: each POST is Python that it runs, and `out` is its answer."""

import json
from pathlib import Path
from typing import Any

from tests.support.actor_box import ask

PROGRAM = """
import http.server, json, sys
BOOT = {}
exec(sys.argv[1], BOOT)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(b"ready")
    def do_POST(self):
        scope = {"out": None, "boot": BOOT.get("out")}
        try:
            exec(self.rfile.read(int(self.headers["content-length"])), scope)
            out = {"out": scope["out"]}
        except Exception as e:
            out = {"error": type(e).__name__, "errno": getattr(e, "errno", None), "text": str(e)}
        self.answer(json.dumps(out).encode())
http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
"""

# One request, whatever its status; and one connection that only says something.
FETCH = """
import urllib.error, urllib.request
def fetch(url, context=None, timeout=20):
    try:
        with urllib.request.urlopen(url, timeout=timeout, context=context) as answer:
            return [answer.status, dict(answer.headers), answer.read().decode()]
    except urllib.error.HTTPError as e:
        return [e.code, dict(e.headers), e.read().decode()]
"""


def command(boot: str = "") -> list[str]:
    """`boot`: what it runs before it listens."""
    return ["/usr/bin/python3", "-c", PROGRAM, boot]


def program(boot: str = "") -> str:
    """The same as a file's content."""
    return PROGRAM.replace("sys.argv[1]", repr(boot))


async def told(gateway: Path, code: str) -> dict[str, Any]:
    """{out} or {error, errno, text}."""
    body = (FETCH + code).encode()
    head = f"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    answer = await ask(gateway, head.encode() + body)
    said: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return said
