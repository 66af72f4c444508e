"""The cache between a checked address and a connection to it. It resolves nothing: it is asked for addresses alone."""

from __future__ import annotations

from atenet.router.resources.names import Resource

__all__ = ["addresses"]


def addresses() -> Resource:
    """Shared by the filters and the clusters that use it."""
    return {
        "name": "addresses",
        "dns_lookup_family": "ALL",
        "max_hosts": 100_000,
        "host_ttl": "60s",
        "dns_cache_circuit_breaker": {"max_pending_requests": 1_000_000},
    }
