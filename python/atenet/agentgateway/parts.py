"""A file's two directions, each with its binds where they stand in the file. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from atenet.agentgateway.model import AgentGatewayConfig
from atenet.agentgateway.model.both import ConfigFile
from atenet.agentgateway.model.egress import EgressBind, EgressFile, EgressFrontendPolicies
from atenet.agentgateway.model.ingress import Backend, Route
from atenet.agentgateway.model.listen import Bind, Gateway
from atenet.agentgateway.model.process import FrontendPolicies, ProcessConfig

__all__ = ["EgressPart", "IngressPart", "egress_part", "ingress_part"]


@dataclass(frozen=True)
class IngressPart:
    """`binds`: each with its place in the file's list."""

    config: ProcessConfig
    frontend_policies: FrontendPolicies
    gateways: dict[str, Gateway]
    binds: tuple[tuple[int, Bind], ...]
    backends: list[Backend]
    routes: list[Route]


@dataclass(frozen=True)
class EgressPart:
    """The same for actors' tunnels."""

    config: ProcessConfig
    frontend_policies: EgressFrontendPolicies
    binds: tuple[tuple[int, EgressBind], ...]


def ingress_part(file: ConfigFile) -> IngressPart | None:
    """None: the file has no ingress."""
    if isinstance(file, EgressFile):
        return None
    placed = ((at, bind) for at, bind in enumerate(file.binds) if isinstance(bind, Bind))
    return IngressPart(
        file.config,
        file.frontend_policies,
        file.gateways,
        tuple(placed),
        file.backends,
        file.routes,
    )


def egress_part(file: ConfigFile) -> EgressPart | None:
    """None: the file has no egress."""
    if isinstance(file, AgentGatewayConfig):
        return None
    placed = ((at, bind) for at, bind in enumerate(file.binds) if isinstance(bind, EgressBind))
    return EgressPart(file.config, file.frontend_policies, tuple(placed))
