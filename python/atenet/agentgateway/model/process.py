"""`config` and `frontendPolicies`: what holds for the whole process."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from atenet.agentgateway.model.base import Part, unused
from atenet.agentgateway.model.values import Duration, HostPort, Share

__all__ = [
    "BackendDefaults",
    "FrontendHttp",
    "FrontendPolicies",
    "FrontendTLS",
    "ProcessConfig",
    "Tracing",
]

_LEVELS = Literal["debug", "info", "warning", "error"]


class BackendDefaults(Part):
    """Connections to workers and actors."""

    connect_timeout: Duration | None = Field(None, description="TCP connection to a worker.")
    pool_idle_timeout: Duration | None = Field(
        None, description="An unused connection to an actor."
    )
    pool_max_size: int | None = unused()


class Logging(Part):
    """The process's own log."""

    level: _LEVELS | None = Field(None, description="Least severe level; the flag wins.")
    filter: str | None = unused()
    fields: Any = unused()
    format: str | None = unused()


class ProcessConfig(Part):
    """Read once at start."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {
            "caAddress", "caAuthToken", "clusterId", "database", "gateway", "localXdsPath", "metrics",
            "modelCatalog", "namespace", "network", "serviceAccount", "session", "tracing",
            "trustDomain", "xdsAddress", "xdsAuthToken",
        }
    )  # fmt: skip

    enable_ipv6: bool = Field(
        True, alias="enableIpv6", description="Listen on [::], which takes IPv4 too."
    )
    admin_addr: Any = unused()
    stats_addr: HostPort | None = Field(None, description="/metrics; default port 15020.")
    readiness_addr: HostPort | None = Field(
        None, description="/readyz, /healthz; default port 15021."
    )
    connection_min_termination_deadline: Duration | None = Field(
        None, description="On SIGTERM: not ready, but serving on for so long. Default 13s."
    )
    connection_termination_deadline: Duration | None = Field(
        None, description="On SIGTERM: the latest end, counted from the signal. Default 43s."
    )
    worker_threads: int | None = Field(None, ge=1, le=1024, description="Default: one a core.")
    backend: BackendDefaults = BackendDefaults()
    logging: Logging = Logging()
    dns: Any = unused()
    hbone: Any = unused()


class FrontendHttp(Part):
    """Client connections."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"maxConnectionDuration"})

    http1_idle_timeout: Duration | None = Field(
        None, alias="http1IdleTimeout", description="A kept-alive connection without a request."
    )
    max_buffer_size: int | None = unused()


class FrontendTLS(Part):
    """Client handshakes."""

    handshake_timeout: Duration | None = None


class Connect(Part):
    """CONNECT on binds that do not terminate it: always refused here."""

    mode: Literal["deny"] = "deny"


class Tracing(Part):
    """Spans over OTLP."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"policies", "filter", "remove", "providerBackend"}
    )

    host: HostPort = Field(description="The collector, host:port.")
    protocol: Literal["http", "grpc"] = "http"
    path: str = Field("/v1/traces", pattern="^/")
    random_sampling: Share = Field(
        0.0, description="The share of requests without a trace that starts one."
    )
    client_sampling: Share = Field(
        1.0, description="The share of sampled incoming traces that is continued."
    )
    attributes: Any = unused()
    resources: Any = unused()


class FrontendPolicies(Part):
    """What holds on every listener."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"tcp", "networkAuthorization", "substrateEgressActorResolution"}
    )

    http: FrontendHttp = FrontendHttp()
    tls: FrontendTLS = FrontendTLS()
    connect: Connect = Connect()
    # Expressions are not evaluated: the access log's fields are fixed.
    access_log: Any = unused()
    tracing: Tracing | None = None
