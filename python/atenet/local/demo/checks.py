"""The promises of the demo. Each returns what it saw, or fails with what it saw instead."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from atenet.local.demo.report import require
from atenet.local.demo.world import FILLERS, Answer, World, actor_headers

__all__ = [
    "another_worker",
    "budget_runs_out",
    "burst",
    "cold",
    "datasette",
    "full_pool",
    "httpbin",
    "malformed",
    "parked",
    "unknown",
    "warm",
]

_BURST = 50
_WARM = 300
# What the error table says of a spent budget.
_NO_CAPACITY = {"envoy": 503, "agentgateway": 504}


def cold(world: World) -> str:
    """A request to a sleeping actor wakes it."""
    before, began = world.phases(), time.monotonic()
    answer = world.request("counter", method="POST", body=b"")
    took = (time.monotonic() - began) * 1000
    _expect(answer, 200)
    spent = {phase: ms - before.get(phase, 0.0) for phase, ms in world.phases().items()}
    parts = ", ".join(f"{phase} {ms:.0f}" for phase, ms in spent.items() if ms >= 0.5)
    return f"{took:.0f} ms, its own start {spent.get('ready', 0):.0f} ms (phases in ms: {parts})"


def warm(world: World) -> str:
    """A request to a running actor, on a kept-alive HTTPS connection."""
    took = []
    with world.connection() as connection:
        for _ in range(_WARM):
            began = time.perf_counter()
            connection.request("GET", "/", headers=actor_headers("counter"))
            answer = connection.getresponse()
            answer.read()
            took.append((time.perf_counter() - began) * 1000)
            require(answer.status == 200, f"status {answer.status}")
    cuts = statistics.quantiles(took, n=100)
    return f"median {statistics.median(took):.2f} ms, p99 {cuts[98]:.2f} ms of {_WARM}"


def burst(world: World) -> str:
    """Fifty requests at once at a sleeping actor cost one resume."""
    resumes, calls = world.resumes(), world.calls()
    gate = threading.Barrier(_BURST)

    def one(_: int) -> int:
        with world.connection() as connection:
            # Fifty handshakes may take a busy machine longer than the actor takes to wake.
            connection.connect()
            gate.wait(timeout=30)
            connection.request("GET", "/", headers=actor_headers("burst"))
            answer = connection.getresponse()
            answer.read()
            return answer.status

    try:
        with ThreadPoolExecutor(_BURST) as pool:
            statuses = list(pool.map(one, range(_BURST)))
        good, ran, called = statuses.count(200), world.resumes() - resumes, world.calls() - calls
    finally:
        world.suspend("burst")  # the checks that follow need its slot
    seen = f"{good} times 200, {ran} resume workflow, {called} ResumeActor call"
    require((good, ran, called) == (_BURST, 1, 1), seen)
    return seen


def another_worker(world: World) -> str:
    """A suspended actor comes back on another worker with its file."""
    _expect(world.request("counter", method="POST", body=b""), 200)
    count, first = _count(world.request("counter")), world.worker_of("counter")
    world.suspend("counter")
    with full_pool(world) as fillers:
        for name, worker in fillers.items():
            if worker != first:
                world.suspend(name)
        again = _count(world.request("counter"))
    second = world.worker_of("counter")
    seen = f"{first} -> {second}, count {count} -> {again}"
    require(second not in ("", first) and again == count, seen)
    world.suspend("counter")
    return seen


def parked(world: World) -> str:
    """With a full pool a request waits, and is served when a slot is freed."""
    with full_pool(world) as fillers, ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(world.request, "counter")
        held = _still_waiting(waiting, 1.0)
        world.suspend(next(iter(fillers)))
        freed = time.monotonic()
        answer = waiting.result(timeout=30)
        ended = time.monotonic()
    require(held, f"it was answered {answer.status} at once")
    _expect(answer, 200)
    world.suspend("counter")
    return (
        f"200 after {ended - began:.1f} s, {(ended - freed) * 1000:.0f} ms after the slot was free"
    )


def budget_runs_out(world: World) -> str:
    """With a full pool that stays full, the request is refused when the park budget is spent."""
    with full_pool(world):
        began = time.monotonic()
        answer = world.request("counter")
        took = time.monotonic() - began
    status = _NO_CAPACITY[world.dataplane]
    _expect(answer, status, "no-capacity")
    return f"{status} no-capacity after {took:.1f} s"


def unknown(world: World) -> str:
    """An actor that does not exist."""
    _expect(world.request("nobody"), 404, "actor-not-found")
    return "404 actor-not-found"


def malformed(world: World) -> str:
    """A malformed header is refused before anything is asked of the control plane."""
    before = world.calls()
    for value in (
        "no-slash",
        "two/slashes/here",
        "Upper/case",
        "under_score/x",
        "/empty",
        "de mo/x",
    ):
        answer = world.request("x", headers=(("ate-target-actor", value),))
        _expect(answer, 404, "bad-target")
    called = world.calls() - before
    require(called == 0, f"{called} control-plane calls")
    return "6 times 404 bad-target, 0 control-plane calls"


def httpbin(world: World) -> str:
    """httpbin under gunicorn answers, and sees the client's own Host and none of our headers."""
    sent = (("Host", "shop.example:8080"), ("Content-Type", "text/plain"), ("Content-Length", "5"))
    answer = world.request("httpbin", "/anything?q=1", "POST", headers=sent, body=b"hello")
    _expect(answer, 200)
    echo = json.loads(answer.body)
    names = {name.lower() for name in echo["headers"]}
    require(echo["data"] == "hello", f"body {echo['data']!r}")
    require(echo["headers"]["Host"] == "shop.example:8080", f"Host {echo['headers']['Host']!r}")
    ours = sorted(n for n in names if n.startswith(("ate-", "x-ate-")))
    require(not ours, f"it saw {ours}")
    _expect(world.request("httpbin", "/status/418"), 418)
    size = len(world.request("httpbin", "/stream-bytes/100000?chunk_size=1000").body)
    require(size == 100_000, f"{size} bytes streamed")
    return "echo, Host unchanged, status 418, 100 kB streamed"


def datasette(world: World) -> str:
    """datasette answers an SQL query."""
    answer = world.request("datasette", "/_memory.json?sql=select+6*7+as+answer&_shape=array")
    _expect(answer, 200)
    found = json.loads(answer.body)
    require(found == [{"answer": 42}], f"it answered {found}")
    world.suspend("datasette")
    world.suspend("httpbin")
    return "select 6*7 is 42"


@contextmanager
def full_pool(world: World) -> Iterator[dict[str, str]]:
    """Every slot taken: actor -> worker. Nothing else may run; all sleep again at the end."""
    try:
        yield {name: world.resume(name) for name in FILLERS}
    finally:
        for name in FILLERS:
            world.suspend(name)


def _still_waiting(answer: Future[Answer], seconds: float) -> bool:
    """A look after the request has had time to be answered, if anything would answer it."""
    try:
        answer.result(timeout=seconds)
    except TimeoutError:
        return True
    return False


def _count(answer: Answer) -> int:
    _expect(answer, 200)
    return int(json.loads(answer.body)["count"])


def _expect(answer: Answer, status: int, reason: str | None = None) -> None:
    found = answer.headers.get("ate-reason")
    seen = f"status {answer.status}" + (f" {found}" if found else "")
    require(answer.status == status, f"{seen}: {answer.body[:200].decode(errors='replace')!r}")
    require(reason is None or found == reason, seen)
