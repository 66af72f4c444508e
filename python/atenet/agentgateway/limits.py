"""Limits that AgentGateway's file has no key for: flags of the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atenet.flags import flag, seconds

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Seconds and counts; the engine checks what they may be."""

    stream_idle_timeout: float = flag(
        "Ends a stream on which nothing moves either way.", default=300.0, kind=seconds
    )
    header_timeout: float = flag(
        "From a request's first byte to the end of its head.", default=10.0, kind=seconds
    )
    worker_handshake_timeout: float = flag(
        "TCP, TLS and HTTP/2 settings of a connection to a worker, together.",
        default=5.0,
        kind=seconds,
    )
    cache_entries: int = flag("Assignments that are remembered at most.", default=200_000)

    def sections(self) -> dict[str, dict[str, Any]]:
        """The engine's fields, by section of its configuration."""
        return {
            "timeouts": {
                "stream_idle_ms": _milliseconds(self.stream_idle_timeout),
                "header_ms": _milliseconds(self.header_timeout),
            },
            "worker": {"handshake_timeout_ms": _milliseconds(self.worker_handshake_timeout)},
            "cache": {"entries": self.cache_entries},
        }


def _milliseconds(value: float) -> int:
    return round(value * 1000)
