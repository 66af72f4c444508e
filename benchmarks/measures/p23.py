"""P-23: a request to a sleeping actor of 10 MB in gVisor, beyond the network path, in milliseconds.

Through the router over HTTPS, less what the same request costs when the actor runs; the slower dataplane counts.
Besides: what each phase took, the same for 100 MB and 1 GB of memory that does not compress, and how soon a suspend
had freed the slot.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from atenet.cli.control import DEADLINE_SECONDS
from atenet.local.demo.software import ATESPACE, Software, find_software
from atenet.local.demo.world import World, running_world
from atenet.local.settings import DATAPLANES
from atenet.proto import ateapi_pb2 as pb

from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 15
_WARM = 20
# name -> bytes besides the 9 MB that the program's own image has, and how often
_LARGER = {"100 MB": (91_000_000, 5), "1 GB": (991_000_000, 3)}


def take() -> Outcome:
    software = find_software()
    seen = {dataplane: _seen(dataplane, software) for dataplane in DATAPLANES}
    medians = {dataplane: _median(found["10 MB"], "value") for dataplane, found in seen.items()}
    slower = max(medians, key=lambda dataplane: medians[dataplane])
    runs = seen[slower]["10 MB"]
    return Outcome(
        value=medians[slower],
        ours=_median(runs, "cold_ms"),
        peer=_median(runs, "warm_ms"),
        peer_name="the same request to the running actor",
        runs=[{"dataplane": slower, **run} for run in runs],
        also={
            "medians": medians,
            "by_size": {
                dataplane: {size: _summary(found) for size, found in sizes.items()}
                for dataplane, sizes in seen.items()
            },
        },
    )


def _seen(dataplane: str, software: Software) -> dict[str, list[dict[str, Any]]]:
    with running_world(software, dataplane=dataplane, keep=False) as world:
        if not world.keeps_memory:
            raise RuntimeError("P-23 needs runsc\nhint: make runsc")
        seen = {"10 MB": _runs(world, software, "10mb", 0, _RUNS)}
        for size, (ballast, times) in _LARGER.items() if dataplane == DATAPLANES[0] else ():
            name = size.lower().replace(" ", "")
            seen[size] = _runs(world, software, name, ballast, times)
        return seen


def _runs(
    world: World, software: Software, name: str, ballast: int, times: int
) -> list[dict[str, Any]]:
    _create(world, software, name, ballast)
    _ask(world, name)
    warm = statistics.median(_ask(world, name) for _ in range(_WARM))
    _suspended(world, name)
    _ask(world, name)
    _suspended(world, name)  # the first wake of all reads files that later ones find in memory
    return [_run(world, name, warm) for _ in range(times)]


def _run(world: World, name: str, warm: float) -> dict[str, Any]:
    before = world.phases()
    cold = _ask(world, name)
    phases = {phase: round(ms - before.get(phase, 0.0), 1) for phase, ms in world.phases().items()}
    suspend = _suspended(world, name)
    return {
        "value": cold - warm,
        "cold_ms": cold,
        "warm_ms": warm,
        "suspend_ms": suspend,
        "phases_ms": {phase: ms for phase, ms in phases.items() if ms > 0},
    }


def _create(world: World, software: Software, name: str, ballast: int) -> None:
    (template,) = (t for t in software.remembering() if t.metadata.name == "memory")
    template.metadata.name = name
    template.snapshot_config.boot_each = True
    template.containers[0].wakeup_probe.timeout_seconds = 60
    template.containers[0].env.add(name="BALLAST", value=str(ballast))
    asked = pb.CreateActorTemplateRequest(actor_template=template)
    world.stub.CreateActorTemplate(asked, timeout=DEADLINE_SECONDS)
    actor = pb.Actor(
        metadata=pb.ResourceMetadata(atespace=ATESPACE, name=name),
        actor_template=pb.ObjectRef(atespace=ATESPACE, name=name),
    )
    world.stub.CreateActor(pb.CreateActorRequest(actor=actor), timeout=DEADLINE_SECONDS)


def _ask(world: World, name: str) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    answer = world.request(name)
    took = (time.perf_counter() - began) * 1000
    if answer.status != 200:
        raise RuntimeError(f"{name} answered {answer.status}: {answer.body!r}")
    return took


def _suspended(world: World, name: str) -> float:
    """Milliseconds until the slot was free; nothing is in flight, so no grace is waited for."""
    began = time.perf_counter()
    world.suspend(name)
    return (time.perf_counter() - began) * 1000


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    phases = sorted({phase for run in runs for phase in run["phases_ms"]})
    return {
        "value": round(_median(runs, "value"), 1),
        "suspend_ms": round(_median(runs, "suspend_ms"), 1),
        "phases_ms": {
            phase: round(statistics.median(run["phases_ms"].get(phase, 0.0) for run in runs), 1)
            for phase in phases
        },
    }


def _median(runs: list[dict[str, Any]], name: str) -> float:
    return float(statistics.median(run[name] for run in runs))
