"""What the control plane counts. Actor names are never a label."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import generate_latest as _generate

from atenet.proto import atelet_pb2 as node_pb

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "ateapi_calls",
            "Calls answered, by method and gRPC code.",
            ("service", "method", "code"),
            registry=self.registry,
        )
        self._resumes = Counter(
            "ateapi_resumes", "Resume workflows that reached RUNNING.", registry=self.registry
        )
        self._phases = Histogram(
            "ateapi_resume_phase_seconds",
            "Resume workflows by phase: claim, start and thaw here; fetch, network, sandbox, ready and"
            " activate as the node reported them.",
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

    def counter(self, service: str, method: str, code: str) -> Counter:
        """The counter of one outcome, to be kept by who counts often."""
        return self._calls.labels(service, method, code)

    def resumed(self) -> None:
        self._resumes.inc()

    def resume_phase(self, phase: str, seconds: float) -> None:
        self._phases.labels(phase).observe(seconds)

    def start_timings(self, timings: node_pb.StartTimings) -> None:
        for field in ("fetch", "network", "sandbox", "ready", "activate"):
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
