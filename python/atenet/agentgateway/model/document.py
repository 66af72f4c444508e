"""The file as a whole."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from atenet.agentgateway.model.base import Part
from atenet.agentgateway.model.ingress import Backend, Route
from atenet.agentgateway.model.listen import Bind, Gateway
from atenet.agentgateway.model.process import FrontendPolicies, ProcessConfig

__all__ = ["AgentGatewayConfig"]


class AgentGatewayConfig(Part):
    """AgentGateway's static configuration, the part that carries ingress."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"llm", "mcp", "policies", "routeGroups", "services", "tcpRoutes", "ui", "workloads"}
    )

    config: ProcessConfig = ProcessConfig()
    frontend_policies: FrontendPolicies = FrontendPolicies()
    gateways: dict[str, Gateway] = Field({}, description="Ports that take requests, by name.")
    binds: list[Bind] = Field([], description="CONNECT ports, and the inside of their tunnels.")
    backends: list[Backend] = []
    routes: list[Route] = []
