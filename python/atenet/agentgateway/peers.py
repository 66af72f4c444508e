"""Peers that are dialled: who they are, and who we are to them. Pure."""

from __future__ import annotations

from typing import Any, Protocol

from atenet.agentgateway.load import Problem
from atenet.agentgateway.model.tls import BackendPolicies, BackendTLS
from atenet.agentgateway.untranslatable import Untranslatable
from atenet.identity.public_roots import public_roots

__all__ = ["control", "credentials", "roots"]


class _Target(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def policies(self) -> BackendPolicies: ...


def control(path: str, policy: _Target) -> dict[str, Any]:
    """The engine's ControlConfig. Raises Untranslatable when our certificate is missing."""
    tls = policy.policies.backend_tls
    host = policy.host.rpartition(":")[0].strip("[]")
    return {
        "address": policy.host,
        "server_name": tls.hostname or host,
        "credentials": credentials(tls, f"{path}.policies.backendTLS"),
        "roots": roots(tls),
    }


def credentials(tls: BackendTLS, path: str) -> dict[str, str]:
    """Our certificate and key. Raises Untranslatable when one is missing."""
    for key in ("cert", "key"):
        if getattr(tls, key) is None:
            raise Untranslatable(
                Problem(f"{path}.{key}", "is required: the peer asks for a client certificate")
            )
    return {"cert": str(tls.cert), "key": str(tls.key)}


def roots(tls: BackendTLS) -> str:
    """The file of authorities that the peer must chain to; the system's where none is named."""
    return tls.root or str(public_roots())
