"""What the controller counts. Names of pools and pods are never a label."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import generate_latest as _generate

from atenet.controller.leadership import Leadership

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self.registry = CollectorRegistry()
        Gauge(
            "ate_controller_leading", "Whether this replica acts.", registry=self.registry
        ).set_function(lambda: float(leadership.leading))
        self.reconciliations = Counter(
            "ate_controller_reconciliations",
            "Looks at one worker pool, by outcome (done, again, failed).",
            ("outcome",),
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "ate_controller_reconcile_seconds",
            "From a pool's turn to the end of what was done for it.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.actions = Counter(
            "ate_controller_actions",
            "What was done to pods and workers, by kind.",
            ("kind",),
            registry=self.registry,
        )
        self.queued = Gauge(
            "ate_controller_queued_pools", "Pools whose turn has come.", registry=self.registry
        )
        self.relists = Counter(
            "ate_controller_relists",
            "Times that a watch began with a list, by resource.",
            ("resource",),
            registry=self.registry,
        )

    @property
    def leading(self) -> bool:
        return self._leadership.leading

    def text(self) -> str:
        return _generate(self.registry).decode()
