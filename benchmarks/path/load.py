"""The load generators, one thread each: wrk for HTTP/1.1, h2load for HTTP/2 and for a fixed rate."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.path.cores import LOAD
from benchmarks.path.program import on_cores
from benchmarks.path.worker import ATESPACE

__all__ = ["CONNECTIONS", "Load", "h2load", "h2load_at", "h2load_said", "wrk", "wrk_said"]

# Requests in flight: on as many connections over HTTP/1.1, on eight over HTTP/2.
CONNECTIONS = 64
_H2_CONNECTIONS = 8
_HEADER = "ate-target-actor"
_QUANTILES = (50.0, 99.0, 99.9)

_SCRIPT = """
local requests, at = {}, 0
function init(args)
    local actors, size = tonumber(args[1]), tonumber(args[3])
    local method = "GET"
    if size > 0 then
        method, wrk.body = "POST", string.rep("x", size)
    end
    for i = 0, actors - 1 do
        wrk.headers["ate-target-actor"] = args[2] .. "/agent-" .. i
        requests[#requests + 1] = wrk.format(method)
    end
end
function request()
    at = at % #requests + 1
    return requests[at]
end
function done(summary, latency, r)
    local e = summary.errors
    io.write(string.format('\\nJSON {"requests": %d, "us": %d, "bytes": %d, "failed": %d, "p": [%d, %d, %d]}\\n',
        summary.requests, summary.duration, summary.bytes,
        e.connect + e.read + e.write + e.status + e.timeout,
        latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
"""


@dataclass(frozen=True)
class Load:
    """What one run saw, and what the generator itself used."""

    rps: float
    bytes_per_second: float
    generator_cores: float
    seconds: float
    # Milliseconds; as the generator saw it, so without what waited for a free connection.
    p50: float | None = None
    p99: float | None = None
    p999: float | None = None


def wrk(
    url: str,
    *,
    seconds: int = 3,
    actors: int = 1,
    connections: int = CONNECTIONS,
    body: int = 0,
) -> Load:
    """HTTP/1.1 keep-alive, as fast as it goes, to the actors in turn; with `body` bytes of POST if any.

    Raises RuntimeError when a request failed.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_SCRIPT)
        script.flush()
        size = ["-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name]
        out, cores = _run(["wrk", *size, url, "--", str(actors), ATESPACE, str(body)])
    return wrk_said(out, cores)


def wrk_said(out: str, cores: float) -> Load:
    """wrk's own words as a result. Raises RuntimeError when a request failed."""
    found = re.search(r"^JSON (.*)$", out, re.MULTILINE)
    if not found:
        raise RuntimeError(f"wrk said:\n{out}")
    said = json.loads(found[1])
    if said["failed"]:
        raise RuntimeError(f"{said['failed']} requests failed: wrk said\n{out}")
    took = said["us"] / 1e6
    p50, p99, p999 = (us / 1000 for us in said["p"])
    return Load(said["requests"] / took, said["bytes"] / took, cores, took, p50, p99, p999)


def h2load(url: str, *, seconds: int = 3) -> Load:
    """HTTP/2, as fast as it goes, as many requests in flight as wrk has. Raises RuntimeError when one failed."""
    streams = CONNECTIONS // _H2_CONNECTIONS
    size = [f"-c{_H2_CONNECTIONS}", f"-m{streams}", f"-D{seconds}"]
    out, cores = _run(["h2load", "-t1", *size, "-H", f"{_HEADER}: {ATESPACE}/agent-0", url])
    return h2load_said(out, cores)


def h2load_at(url: str, rate: float, *, seconds: int = 4) -> Load:
    """HTTP/1.1 at a fixed rate over all connections, with the latency of every request."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "requests.tsv"
        size = [f"-c{CONNECTIONS}", f"--rps={rate / CONNECTIONS:.3f}", f"-D{seconds}"]
        words = ["h2load", "-t1", "--h1", *size, "--warm-up-time=1", f"--log-file={log}"]
        out, cores = _run([*words, "-H", f"{_HEADER}: {ATESPACE}/agent-0", url])
        took = sorted(int(line.split("\t")[2]) for line in log.read_text().splitlines())
    load = h2load_said(out, cores)
    p50, p99, p999 = (took[min(len(took) - 1, int(len(took) * q / 100))] for q in _QUANTILES)
    return replace(load, p50=p50 / 1000, p99=p99 / 1000, p999=p999 / 1000)


def h2load_said(out: str, cores: float) -> Load:
    """h2load's own words as a result. Raises RuntimeError when a request failed."""
    finished = re.search(r"^finished in ([\d.]+)s, ([\d.]+) req/s", out, re.MULTILINE)
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", out)
    good = re.search(
        r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out, re.MULTILINE
    )
    traffic = re.search(r"^traffic: \S+ \((\d+)\) total", out, re.MULTILINE)
    if not (finished and counts and good and traffic):
        raise RuntimeError(f"h2load said:\n{out}")
    if int(counts[2]) or int(counts[3]) or any(int(good[n]) for n in (2, 3, 4)):
        raise RuntimeError(f"requests failed: h2load said\n{out}")
    took = float(finished[1])
    return Load(float(finished[2]), int(traffic[1]) / took, cores, took)


def _run(command: list[str]) -> tuple[str, float]:
    """The command's output, and how many cores it kept busy."""
    before = os.times()
    done = subprocess.run(
        [*on_cores(LOAD), *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    after = os.times()
    if done.returncode:
        raise RuntimeError(
            f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return done.stdout, used / (after.elapsed - before.elapsed)
