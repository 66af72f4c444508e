"""What a test asks of a router, in no dataplane's own words."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RouterSpec:
    """Settings in seconds; the defaults are the product's unless a comment says otherwise."""

    cache_ttl: float = 5.0
    cache_entries: int | None = None
    park_budget: float = 5.0
    park_max: int = 1024
    retry_interval: float = 0.1
    retry_factor: float = 1.1
    stream_idle: float = 300.0
    header_limit: float = 10.0
    header_fields: int = 128
    tls_handshake: float = 15.0
    client_idle: float = 600.0
    actor_idle: float = 5.0
    connect_timeout: float = 1.0
    handshake_timeout: float = 5.0
    # Tests do not wait for an endpoint's removal to spread.
    drain_delay: float = 0.0
    drain_timeout: float = 30.0
    # The OTLP collector's `host:port` (HTTP); None: no spans.
    tracing: str | None = None
    # How it is spoken to; "grpc" on the native dataplane alone.
    tracing_protocol: str = "http"
    # Where the control plane is; None: the test's own.
    api_address: str | None = None
    # The router's identity towards workers; None: the right one.
    worker_credential: Path | None = None
