"""Limits that AgentGateway's file has no key for: flags of the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atenet.address import numeric_address
from atenet.errors import AteError
from atenet.flags import flag, seconds

__all__ = ["Limits", "with_port"]

_DNS_PORT = 53


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

    header_fields: int = flag("Fields in a request's head at most.", default=128)
    egress_sniff_timeout: float = flag(
        "A connection of an actor must show what it is within this.", default=5.0, kind=seconds
    )
    egress_recheck_interval: float = flag(
        "How often a live egress tunnel's actor and rules are looked at again.",
        default=10.0,
        kind=seconds,
    )
    egress_credential_ttl: float = flag(
        "How long a credential from a provider is used.", default=30.0, kind=seconds
    )
    egress_connect_timeout: float = flag(
        "A name look-up, and the connection to one address of an origin.",
        default=10.0,
        kind=seconds,
    )
    egress_allow_cidr: tuple[str, ...] = flag(
        "Addresses that the egress gateway dials although they are not public, such as 10.1.0.0/16.",
        default=(),
    )

    egress_name_server: tuple[str, ...] = flag(
        "Who resolves the names of origins, IP or IP:PORT; repeatable, asked in this order. "
        "Without it: the system's resolver.",
        default=(),
    )

    def egress(self) -> dict[str, Any]:
        """The engine's fields for the egress gateway."""
        return {
            "allow_cidrs": list(self.egress_allow_cidr),
            "name_servers": [with_port(server) for server in self.egress_name_server],
            "limits": {
                "sniff_ms": _milliseconds(self.egress_sniff_timeout),
                "recheck_ms": _milliseconds(self.egress_recheck_interval),
                "credential_ttl_ms": _milliseconds(self.egress_credential_ttl),
                "connect_ms": _milliseconds(self.egress_connect_timeout),
            },
        }

    def sections(self) -> dict[str, dict[str, Any]]:
        """The engine's fields, by section of its configuration."""
        return {
            "timeouts": {
                "stream_idle_ms": _milliseconds(self.stream_idle_timeout),
                "header_ms": _milliseconds(self.header_timeout),
            },
            "worker": {"handshake_timeout_ms": _milliseconds(self.worker_handshake_timeout)},
            "cache": {"entries": self.cache_entries},
            "limits": {"headers": self.header_fields},
        }


def with_port(server: str) -> str:
    """`IP:PORT` of an address with or without a port. Raises AteError."""
    try:
        return str(numeric_address(server, _DNS_PORT))
    except ValueError as error:
        raise AteError(f"--egress-name-server: {error}") from error


def _milliseconds(value: float) -> int:
    return round(value * 1000)
