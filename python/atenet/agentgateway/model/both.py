"""One file for both directions: an ingress router and an egress gateway in one process."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from atenet.agentgateway.model.base import Part
from atenet.agentgateway.model.document import AgentGatewayConfig
from atenet.agentgateway.model.egress import EgressBind, EgressFile, EgressFrontendPolicies
from atenet.agentgateway.model.ingress import Backend, Route
from atenet.agentgateway.model.listen import Bind, Gateway
from atenet.agentgateway.model.process import ProcessConfig

__all__ = ["BothFile", "ConfigFile"]


def _is_egress_bind(bind: Any) -> bool:
    """Of actors' tunnels: its inside sniffs (`protocol: AUTO`), its port asks workers for certificates (`tls.root`)."""
    if not isinstance(bind, dict):
        return isinstance(bind, EgressBind)
    listeners = bind.get("listeners")
    only = listeners[0] if isinstance(listeners, list) and listeners else None
    tls = only.get("tls") if isinstance(only, dict) else None
    return bind.get("protocol") == "AUTO" or (isinstance(tls, dict) and "root" in tls)


def _direction(bind: Any) -> str:
    return "egress" if _is_egress_bind(bind) else "ingress"


class BothFile(Part):
    """AgentGateway's static configuration, ingress and egress."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"llm", "mcp", "policies", "routeGroups", "services", "tcpRoutes", "ui", "workloads"}
    )

    config: ProcessConfig = ProcessConfig()
    frontend_policies: EgressFrontendPolicies
    gateways: dict[str, Gateway] = Field({}, description="Ports that take requests, by name.")
    binds: list[
        Annotated[
            Annotated[Bind, Tag("ingress")] | Annotated[EgressBind, Tag("egress")],
            Discriminator(_direction),
        ]
    ] = Field(
        [],
        description="CONNECT ports and the inside of their tunnels; the tunnels' port of an egress gateway and "
        "their inside.",
    )
    backends: list[Backend] = []
    routes: list[Route] = []


ConfigFile = AgentGatewayConfig | EgressFile | BothFile
