"""Routes, their `substrateIngress` policy, and the workers' backend."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from atenet.agentgateway.model.base import Part, unused
from atenet.agentgateway.model.tls import BackendPolicies
from atenet.agentgateway.model.values import Duration, HostPort, Port

__all__ = ["Backend", "RequestParking", "Route", "RouteBackend", "SubstrateIngress"]


class RequestParking(Part):
    """Requests that wait for an actor to become routable."""

    budget: Duration | None = Field(
        None, description="How long a look-up is tried. Default 5s; 0s means 5s."
    )
    max: int | None = Field(
        None, strict=True, ge=0, description="Default 1024; 0 turns parking off."
    )
    retry_interval: Duration | None = Field(None, description="Default 100ms; 0s means 100ms.")
    retry_factor: float | None = Field(
        None, ge=0, le=10, description="Default 1.1; below 1 means 1."
    )


class SubstrateIngress(Part):
    """Finds a request's actor through the control plane."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"backend", "name", "port"})

    host: HostPort = Field(description="The control plane, host:port.")
    policies: BackendPolicies = BackendPolicies()
    connect_target_port: Port = Field(8443, description="atunnel's port on the workers.")
    cache_ttl: Duration | None = Field(
        None, description="Reuse of an answer. Default 5s; 0s: none."
    )
    request_parking: RequestParking = RequestParking()


class RoutePolicies(Part):
    """The one policy that the ingress needs."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {
            "a2a", "ai", "apiKey", "authorization", "backendAuth", "backendTLS", "backendTunnel", "basicAuth",
            "buffer", "cors", "csrf", "directResponse", "extAuthz", "extProc", "jwtAuth",
            "localRateLimit", "mcpAuthentication", "mcpAuthorization", "oidc", "remoteRateLimit",
            "requestHeaderModifier", "requestMirror", "requestRedirect", "responseHeaderModifier",
            "retry", "substrateEgress", "timeout", "transformations", "urlRewrite",
        }
    )  # fmt: skip

    substrate_ingress: SubstrateIngress


class PathMatch(Part):
    """Every path: actors are told apart by header alone."""

    path_prefix: Literal["/"]


class RouteMatch(Part):
    """A request match."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"headers", "method", "query"})

    path: PathMatch = PathMatch(pathPrefix="/")


class TunnelProxy(Part):
    """Who is tunnelled through: a dynamic backend, which is the assignment's worker."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"host", "service"})

    backend: str


class BackendTunnel(Part):
    """The hop to the workers' atunnel."""

    proxy: TunnelProxy
    mode: Literal["connect"] = Field(description="Every request travels in a CONNECT tunnel.")
    policies: BackendPolicies


class TunnelledPolicies(Part):
    """Policies of a workers' backend."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"backendAuth", "backendTLS", "http", "tcp"})

    backend_tunnel: BackendTunnel


class Dynamic(Part):
    """A destination that is known only per request."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"target"})


class Backend(Part):
    """A named backend."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"ai", "aws", "gcp", "host", "mcp", "service"}
    )

    name: str = Field(min_length=1)
    dynamic: Dynamic
    policies: TunnelledPolicies


class RouteBackend(Part):
    """A reference, `/<name>`."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"ai", "dynamic", "host", "mcp", "policies", "service"}
    )

    backend: str
    weight: Any = unused()


class Route(Part):
    """Requests of some gateways to actors."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"hostnames", "routeGroup", "ruleName"})

    name: str | None = None
    gateways: list[str] = Field(
        ["default"], min_length=1, description="Names; one may stand alone."
    )
    matches: list[RouteMatch] = []
    policies: RoutePolicies
    backends: list[RouteBackend] = Field(min_length=1, max_length=1)

    @field_validator("gateways", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value
