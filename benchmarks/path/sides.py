"""What the two sides of a comparison have in common: where a client connects, and the two processes of the path."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.path.program import Program

__all__ = ["Side"]


@dataclass(frozen=True)
class Side:
    """One running path. `https` and `http`: `host:port` of its client listeners."""

    name: str
    https: str
    http: str
    router: Program
    worker: Program
    # Where the router's `/metrics` are; ours only.
    stats: str = ""

    @property
    def cpu_seconds(self) -> tuple[float, float]:
        """Of the router and of the worker's end so far."""
        return self.router.cpu_seconds, self.worker.cpu_seconds
