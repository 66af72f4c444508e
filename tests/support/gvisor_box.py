"""Activations of the gvisor class, with the real runsc. It is not there? Then the tests fail."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from atenet.gvisor import find_runsc
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.sandbox import Cgroups, GvisorSandbox

from tests.support.actor_box import (
    GET,
    ActorBox,
    actor_box,
    ask,
    http_probe,
    python,
    template,
)

# Counts in memory alone: what it answers tells whether it is the same process that goes on.
COUNTER = """
import http.server, os, pathlib, time
started = str(time.time_ns())
count, ballast = 0, os.urandom(int(os.environ.get("BALLAST", "0")))
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global count
        if self.path == "/ready":
            body = b"ready"
        elif self.path == "/started":
            body = started.encode()
        elif self.path == "/who":
            body = pathlib.Path("/run/ate/actor-id").read_bytes()
        elif self.path.startswith("/read"):
            body = pathlib.Path(self.path.removeprefix("/read")).read_bytes()
        elif self.path.startswith("/write"):
            pathlib.Path(self.path.removeprefix("/write")).write_bytes(b"written")
            body = b"ok"
        else:
            count += 1
            body = str(count).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
"""


def runsc() -> Path:
    found = find_runsc()
    if found is None:
        pytest.fail("there is no runsc\nhint: `make runsc` builds it; it needs Go", pytrace=False)
    return found


@asynccontextmanager
async def gvisor_box(where: Path) -> AsyncIterator[ActorBox]:
    program = runsc()

    def make(scratch: Path, prefix: str, threads: ThreadPoolExecutor) -> GvisorSandbox:
        return GvisorSandbox(program, prefix, Cgroups(prefix), threads, disk=scratch / "gvisor")

    async with actor_box(where, make) as box:
        yield box


def counter_template(uid: str = "template-1", ballast: int = 0) -> pb.ActorTemplate:
    """Of the class, with memory in its snapshots and a durable directory at /data."""
    made = template(*python(COUNTER), probe=http_probe("/ready"))
    made.metadata.uid = uid
    made.sandbox_config.sandbox_class = "gvisor"
    made.snapshot_config.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_FULL
    if ballast:
        made.containers[0].env.add(name="BALLAST", value=str(ballast))
    return made


async def count(gateway: Path, path: str = "/") -> str:
    """What the counter answers to one request."""
    request = GET.replace(b"GET /", b"GET " + path.encode(), 1)
    return (await ask(gateway, request)).partition(b"\r\n\r\n")[2].decode()
