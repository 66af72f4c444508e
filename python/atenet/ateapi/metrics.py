"""What the control plane counts. Actor names are never a label."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import generate_latest as _generate

from atenet.ateapi.store import WorkerTotals
from atenet.proto import atelet_pb2 as node_pb

__all__ = ["MethodMetrics", "Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class MethodMetrics:
    """What one method's calls come to."""

    def __init__(self, counter: Callable[[str], Counter], seconds: Histogram) -> None:
        self._counter = counter
        self._seconds = seconds
        self._codes: dict[str, Counter] = {}

    def answered(self, code: str, seconds: float) -> None:
        counted = self._codes.get(code)
        if counted is None:
            counted = self._codes[code] = self._counter(code)
        counted.inc()
        self._seconds.observe(seconds)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "ateapi_calls",
            "Calls answered, by method and gRPC code.",
            ("service", "method", "code"),
            registry=self.registry,
        )
        self._call_seconds = Histogram(
            "ateapi_call_duration_seconds",
            "From a call's arrival to its answer, by method.",
            ("service", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._claims = Counter(
            "ateapi_claims",
            "Attempts to claim a slot, by outcome.",
            ("outcome",),
            registry=self.registry,
        )
        self._slots = Gauge(
            "ateapi_slots",
            "Slots of all workers that take starts (capacity), and of all workers (claimed).",
            ("kind",),
            registry=self.registry,
        )
        self._workers = Gauge(
            "ateapi_workers",
            "Workers by what they are for new actors.",
            ("state",),
            registry=self.registry,
        )
        self._resumes = Counter(
            "ateapi_resumes", "Resume workflows that reached RUNNING.", registry=self.registry
        )
        self._phases = Histogram(
            "ateapi_resume_phase_seconds",
            "Resume workflows by phase: claim, start and thaw here; fetch, network, egress, sandbox, ready"
            " and activate as the node reported them.",
            ("phase",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._reclaimed = Counter(
            "ateapi_actors_reclaimed",
            "Idle actors suspended because another needed their slot.",
            registry=self.registry,
        )
        self._idled = Counter(
            "ateapi_actors_idled",
            "Actors suspended because nobody used them for their template's idle_timeout.",
            registry=self.registry,
        )
        self._lost = Counter(
            "ateapi_workers_lost",
            "Workers that stopped heartbeating.",
            registry=self.registry,
        )
        self._recovered = Counter(
            "ateapi_actors_recovered",
            "Actors taken off a lost worker, or whose cut workflow was ended, by the state reached.",
            ("state",),
            registry=self.registry,
        )
        self.operations = Gauge(
            "ateapi_operations_running", "Workflows running now.", registry=self.registry
        )
        self.watches = Gauge(
            "ateapi_router_watches",
            "Routers that are told of freed capacity and ended assignments now.",
            registry=self.registry,
        )

    def of_method(self, service: str, method: str) -> MethodMetrics:
        """To be kept by who answers it: finding a label costs more than counting."""
        return MethodMetrics(
            lambda code: self._calls.labels(service, method, code),
            self._call_seconds.labels(service, method),
        )

    def claimed(self, *, granted: bool) -> None:
        self._claims.labels("granted" if granted else "no_room").inc()

    def capacity(self, totals: WorkerTotals) -> None:
        for state in ("active", "draining", "lost"):
            self._workers.labels(state).set(getattr(totals, state))
        self._slots.labels("capacity").set(totals.slots)
        self._slots.labels("claimed").set(totals.claimed)

    def answered(self, method: str, calls: int) -> None:
        """Calls of a Control method that the front answered with OK, by itself; it times none."""
        self._calls.labels("Control", method, "OK").inc(calls)

    def resumed(self) -> None:
        self._resumes.inc()

    def resume_phase(self, phase: str, seconds: float) -> None:
        self._phases.labels(phase).observe(seconds)

    def start_timings(self, timings: node_pb.StartTimings) -> None:
        for field in ("fetch", "network", "egress", "sandbox", "ready", "activate"):
            self.resume_phase(field, getattr(timings, f"{field}_ms") / 1000)

    def reclaimed(self) -> None:
        self._reclaimed.inc()

    def idled(self) -> None:
        self._idled.inc()

    def worker_lost(self) -> None:
        self._lost.inc()

    def recovered(self, state: str) -> None:
        self._recovered.labels(state).inc()

    def text(self) -> bytes:
        """Prometheus text."""
        return _generate(self.registry)
