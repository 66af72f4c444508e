"""Runs in turns, and what each run tells of its side."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.path.identity import BenchIdentity
from benchmarks.path.load import Load
from benchmarks.path.origin import Origin
from benchmarks.path.sides import Side

__all__ = ["RUNS", "Bench", "Numbers", "bench", "in_turns", "median", "observe"]

RUNS = 5

Numbers = dict[str, float]


@dataclass(frozen=True)
class Bench:
    """What every measure of the path needs."""

    root: Path
    identity: BenchIdentity
    origin: Origin
    stack: ExitStack


@contextmanager
def bench() -> Iterator[Bench]:
    """A directory, certificates and a running origin; `stack` ends with it."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ate-bench-")))
        origin = stack.enter_context(Origin(root))
        yield Bench(root, BenchIdentity(root), origin, stack)


def observe(side: Side, load: Callable[[], Load]) -> Numbers:
    """One run: what the generator saw, and the CPU time of the path, in microseconds a request."""
    before = side.cpu_seconds
    seen = load()
    router, worker = (after - b for after, b in zip(side.cpu_seconds, before, strict=True))
    requests = seen.rps * seen.seconds
    numbers: Numbers = {
        "rps": seen.rps,
        "mib_per_second": seen.bytes_per_second / (1 << 20),
        "generator_cores": seen.generator_cores,
        "router_us": router / requests * 1e6,
        "worker_us": worker / requests * 1e6,
    }
    latencies = {"p50_ms": seen.p50, "p99_ms": seen.p99, "p999_ms": seen.p999}
    return numbers | {name: value for name, value in latencies.items() if value is not None}


def in_turns(sides: Sequence[Callable[[], Numbers]], runs: int = RUNS) -> list[list[Numbers]]:
    """`runs` rounds, each side once a round, the first one first every other round."""
    rounds = []
    for number in range(runs):
        order = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
        seen = {at: sides[at]() for at in order}
        rounds.append([seen[at] for at in range(len(sides))])
    return rounds


def median(rounds: list[list[Numbers]], at: int, key: str) -> float:
    """The median of one number of the side at this place of each round."""
    return statistics.median(sides[at][key] for sides in rounds)
