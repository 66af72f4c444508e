"""What is counted. No name is ever a label."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from atenet.sdsmint.live import Live

__all__ = ["MintMetrics"]


class MintMetrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.minted = Counter("atenet_sdsmint_minted", "Leaves minted.", registry=self._registry)
        self.refused = Counter(
            "atenet_sdsmint_refused", "Names that no leaf was minted for.", registry=self._registry
        )
        self._live = Gauge("atenet_sdsmint_names", "Names with a leaf.", registry=self._registry)

    def follow(self, live: Live) -> None:
        self._live.set_function(lambda: len(live))

    def text(self) -> str:
        """In Prometheus's text format."""
        return generate_latest(self._registry).decode()
