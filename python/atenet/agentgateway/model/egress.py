"""The file of an egress gateway: tunnels of actors in, and what may leave them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from atenet.agentgateway.model.base import Part
from atenet.agentgateway.model.ingress import Dynamic, RouteMatch
from atenet.agentgateway.model.process import FrontendPolicies, ProcessConfig
from atenet.agentgateway.model.tls import BackendPolicies
from atenet.agentgateway.model.values import HostPort, OpenPort

__all__ = ["EgressBind", "EgressFile", "EgressListener", "EgressRoute", "SubstrateEgress"]


class ControlTarget(Part):
    """A peer that is asked: the control plane, or a credential provider."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"backend", "name", "port"})

    host: HostPort
    policies: BackendPolicies = BackendPolicies()


class CredentialProvider(Part):
    """Who is asked for the secrets of `ate-secret://<uriAuthority>/...`."""

    uri_authority: str = Field(min_length=1)
    target: ControlTarget


class SubstrateEgress(ControlTarget):
    """Decides each request by its actor's egress policy."""

    credential_providers: list[CredentialProvider] = []


class EgressPolicies(Part):
    """The one policy of an egress route."""

    substrate_egress: SubstrateEgress


class EgressBackend(Part):
    """The destination, which the policy names."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"ai", "backend", "host", "mcp", "service"})

    dynamic: Dynamic
    policies: BackendPolicies = BackendPolicies()


class EgressRoute(Part):
    """Requests that leave an actor."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"hostnames", "routeGroup", "ruleName"})

    name: str | None = None
    matches: list[RouteMatch] = []
    policies: EgressPolicies
    backends: list[EgressBackend] = Field(min_length=1, max_length=1)


class EgressTcpRoute(Part):
    """TLS that is passed through."""

    name: str | None = None
    backends: list[EgressBackend] = Field(min_length=1, max_length=1)


class EgressTLS(Part):
    """The gateway's certificate with who may connect (`root`), or the interception authority (`mode: dynamicCa`)."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"cipherSuites", "minTLSVersion", "maxTLSVersion", "keyExchangeGroups", "spiffe"}
    )

    mode: Literal["static", "dynamicCa"] = "static"
    cert: str = Field(min_length=1, description="PEM file: the certificate chain, leaf first.")
    key: str = Field(min_length=1, description="PEM file: its private key; may be the same file.")
    root: str | None = Field(None, description="PEM file: the actor-identity authorities.")


class EgressListener(Part):
    """The tunnels' port (HTTPS with `root`), or what is inside them: HTTP, HTTPS with `dynamicCa`, TLS."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"namespace", "policies"})

    name: str | None = Field(None, min_length=1)
    protocol: Literal["HTTP", "HTTPS", "TLS"]
    hostname: Literal["*"] | None = None
    tls: EgressTLS | None = None
    routes: list[EgressRoute] = []
    tcp_routes: list[EgressTcpRoute] = []


class EgressBind(Part):
    """The port that workers dial, or the inside of the tunnels (`mode: internal`)."""

    port: OpenPort | None = None
    mode: Literal["standard", "internal"] = "standard"
    protocol: Literal["AUTO"] | None = None
    tunnel_protocol: Literal["direct", "connect"] = "direct"
    listeners: list[EgressListener] = Field(min_length=1, max_length=3)

    @model_validator(mode="after")
    def _shape(self) -> Any:
        if self.mode == "standard":
            self._check_port()
        else:
            self._check_inside()
        return self

    def _check_port(self) -> None:
        only = self.listeners[0]
        if self.port is None or self.tunnel_protocol != "connect" or len(self.listeners) != 1:
            raise ValueError("the tunnels' bind has port, tunnelProtocol: connect and one listener")
        if only.protocol != "HTTPS" or only.tls is None or only.tls.mode != "static":
            raise ValueError("the tunnels' listener needs protocol: HTTPS and static tls")
        if only.tls.root is None:
            raise ValueError("the tunnels' listener needs tls.root: who may open tunnels")
        if only.routes or only.tcp_routes:
            raise ValueError("the tunnels' listener has no routes; they stand on the internal bind")

    def _check_inside(self) -> None:
        if self.port or self.protocol != "AUTO" or self.tunnel_protocol != "direct":
            raise ValueError("the tunnels' inside has protocol: AUTO and no port")
        protocols = sorted(listener.protocol for listener in self.listeners)
        if protocols not in (["HTTP", "TLS"], ["HTTP", "HTTPS", "TLS"]):
            raise ValueError(
                "the tunnels' inside has one listener each for HTTP, TLS and, to intercept, HTTPS"
            )
        for listener in self.listeners:
            _check_inner(listener)


def _check_inner(listener: EgressListener) -> None:
    dynamic = listener.tls is not None and listener.tls.mode == "dynamicCa"
    if (listener.protocol == "HTTPS") != dynamic or (listener.tls is not None and not dynamic):
        raise ValueError(
            "inside the tunnels, HTTPS has tls.mode: dynamicCa, and the others have no tls"
        )
    if listener.tls is not None and listener.tls.root is not None:
        raise ValueError("tls.root does not go with mode: dynamicCa")
    if listener.protocol == "TLS":
        if listener.routes or len(listener.tcp_routes) != 1:
            raise ValueError("the TLS listener has one entry in tcpRoutes and no routes")
    elif listener.tcp_routes or len(listener.routes) != 1:
        raise ValueError(
            f"the {listener.protocol} listener has one entry in routes, and no tcpRoutes"
        )


class EgressFrontendPolicies(FrontendPolicies):
    """What holds for every tunnel."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"tcp", "networkAuthorization"})

    substrate_egress_actor_resolution: ControlTarget = Field(
        description="The control plane that knows the actors; makes the file an egress gateway's."
    )


class EgressFile(Part):
    """AgentGateway's static configuration of an egress gateway."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {
            "backends", "gateways", "llm", "mcp", "policies", "routeGroups", "routes", "services", "tcpRoutes", "ui",
            "workloads",
        }
    )  # fmt: skip

    config: ProcessConfig = ProcessConfig()
    frontend_policies: EgressFrontendPolicies
    binds: list[EgressBind] = Field(min_length=2, max_length=2)
