"""Where clients come in: `gateways` for requests, `binds` for CONNECT."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from atenet.agentgateway.model.base import Part
from atenet.agentgateway.model.ingress import Route
from atenet.agentgateway.model.tls import ListenerTLS
from atenet.agentgateway.model.values import OpenPort

__all__ = ["Bind", "BindListener", "Gateway"]


class _Entry(Part):
    protocol: Literal["HTTP", "HTTPS"] | None = Field(
        None, description="Default: HTTPS with tls, else HTTP."
    )
    tls: ListenerTLS | None = None

    @property
    def secure(self) -> bool:
        return self.tls is not None

    @model_validator(mode="after")
    def _tls_fits(self) -> Any:
        if self.protocol == "HTTPS" and self.tls is None:
            raise ValueError("tls is required for HTTPS")
        if self.protocol == "HTTP" and self.tls is not None:
            raise ValueError("tls is only for HTTPS")
        return self


class Gateway(_Entry):
    """A port that takes requests."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"hostname", "listeners", "policies"})

    port: OpenPort


class BindListener(_Entry):
    """What a bind speaks."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"hostname", "namespace", "policies", "tcpRoutes"}
    )

    name: str | None = Field(None, min_length=1)
    routes: list[Route] = []


class Bind(Part):
    """A CONNECT port, or the inside of the tunnels (`mode: internal`)."""

    port: OpenPort | None = None
    mode: Literal["standard", "internal"] = "standard"
    protocol: Literal["AUTO"] | None = None
    tunnel_protocol: Literal["direct", "connect"] = "direct"
    listeners: list[BindListener] = Field(min_length=1, max_length=1)

    @model_validator(mode="after")
    def _shape(self) -> Any:
        if self.mode == "internal":
            if self.port or self.tunnel_protocol == "connect" or self.listeners[0].secure:
                raise ValueError("an internal bind has no port, no tls and no tunnelProtocol")
            if not self.listeners[0].routes:
                raise ValueError("an internal bind needs a route with substrateIngress")
        elif self.port is None:
            raise ValueError("port is required unless mode is internal")
        elif self.tunnel_protocol == "connect" and self.listeners[0].routes:
            raise ValueError("a CONNECT bind has no routes; they stand on the internal bind")
        return self
