"""P-22: what the system adds to the start of a process actor, in milliseconds.

A request to the sleeping counter, through the router over HTTPS, less the time that the same
program needs on the bare machine from exec to its first answer. Both in turns; the slower dataplane counts.
"""

from __future__ import annotations

import http.client
import os
import socket
import statistics
import subprocess
import tempfile
import time

from atenet.local.demo.software import Software, find_software
from atenet.local.demo.world import World, running_world
from atenet.local.settings import DATAPLANES

from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 15
_POLL_SECONDS = 0.001


def take() -> Outcome:
    software = find_software()
    runs = {dataplane: _runs(dataplane, software) for dataplane in DATAPLANES}
    medians = {dataplane: _median(found, "value") for dataplane, found in runs.items()}
    slower = max(medians, key=lambda dataplane: medians[dataplane])
    return Outcome(
        value=medians[slower],
        ours=_median(runs[slower], "cold_ms"),
        peer=_median(runs[slower], "bare_ms"),
        peer_name="the program on the bare machine",
        runs=[{"dataplane": name, **run} for name, found in runs.items() for run in found],
        also={"medians": medians},
    )


def _median(runs: list[dict[str, float]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def _runs(dataplane: str, software: Software) -> list[dict[str, float]]:
    with running_world(software, dataplane=dataplane, keep=False) as world:
        _cold(world)  # the first start of all reads files that later ones find in memory
        world.suspend("counter")
        return [_run(world, software) for _ in range(_RUNS)]


def _run(world: World, software: Software) -> dict[str, float]:
    bare, cold = _bare(software), _cold(world)
    world.suspend("counter")
    return {"value": cold - bare, "cold_ms": cold, "bare_ms": bare}


def _cold(world: World) -> float:
    began = time.perf_counter()
    answer = world.request("counter")
    took = (time.perf_counter() - began) * 1000
    if answer.status != 200:
        raise RuntimeError(f"the counter answered {answer.status}: {answer.body!r}")
    return took


def _bare(software: Software) -> float:
    """Milliseconds from exec to the first answer, without any of us."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as data:
        began = time.perf_counter()
        program = subprocess.Popen(
            ["/usr/bin/python3", "-S", software.counter / "counter.py"],
            env={**os.environ, "DATA": data, "PORT": str(port)},
            stdout=subprocess.DEVNULL,
        )
        try:
            _until_answers(port)
            return (time.perf_counter() - began) * 1000
        finally:
            program.kill()
            program.wait()


def _until_answers(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        except ConnectionRefusedError:
            time.sleep(_POLL_SECONDS)  # noqa: TID251 - nothing tells when a bare program listens
        finally:
            connection.close()
    raise RuntimeError("the bare program did not answer in 30 s")
