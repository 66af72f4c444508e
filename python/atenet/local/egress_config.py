"""The egress gateway's static configuration for a local system, in AgentGateway's format. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from atenet.credentials.settings import PROVIDER_CLASS
from atenet.identity import spiffe
from atenet.local.processes import Credentials
from atenet.local.router_config import HEADER, drain_limit, duration
from atenet.local.settings import LocalSettings

__all__ = ["render"]


def render(settings: LocalSettings, creds: Credentials) -> str:
    """YAML text. `settings` has no port 0 left."""
    return HEADER + yaml.safe_dump(_config(settings, creds), sort_keys=False)


def _config(settings: LocalSettings, creds: Credentials) -> dict[str, Any]:
    control = _target(f"{settings.address}:{settings.api_port}", spiffe.API_SERVER_NAME, creds)
    provider = _target(
        f"{settings.address}:{settings.credentials_port}", spiffe.CREDENTIALS_SERVER_NAME, creds
    )
    providers = [{"uriAuthority": PROVIDER_CLASS, "target": provider}]
    roots = settings.egress_origin_roots
    origins = {} if roots is None else {"root": str(roots)}
    route = {
        "policies": {"substrateEgress": {**control, "credentialProviders": providers}},
        "backends": [{"dynamic": {}, "policies": {"backendTLS": origins}}],
    }
    return {
        "config": {
            "statsAddr": f"{settings.address}:{settings.egress_stats_port}",
            "readinessAddr": f"{settings.address}:{settings.egress_readiness_port}",
            "connectionMinTerminationDeadline": "0ms",
            "connectionTerminationDeadline": duration(drain_limit(settings)),
        },
        "frontendPolicies": {"substrateEgressActorResolution": control},
        "binds": [_tunnels(settings, creds), _inside(creds, route)],
    }


def _target(host: str, name: str, creds: Credentials) -> dict[str, Any]:
    pod = str(creds.egress_pod)
    tls = {"cert": pod, "key": pod, "root": str(creds.service_roots), "hostname": name}
    return {"host": host, "policies": {"backendTLS": tls}}


def _tunnels(settings: LocalSettings, creds: Credentials) -> dict[str, Any]:
    served = str(creds.egress_service)
    tls = {"cert": served, "key": served, "root": str(creds.actor_roots)}
    return {
        "port": settings.egress_port,
        "tunnelProtocol": "connect",
        "listeners": [{"name": "tunnels", "protocol": "HTTPS", "tls": tls}],
    }


def _inside(creds: Credentials, route: dict[str, Any]) -> dict[str, Any]:
    certificate, key = creds.interception_ca
    authority = {"mode": "dynamicCa", "cert": str(certificate), "key": str(key)}
    return {
        "mode": "internal",
        "protocol": "AUTO",
        "listeners": [
            {"protocol": "HTTPS", "tls": authority, "routes": [route]},
            {"protocol": "HTTP", "routes": [route]},
            {"protocol": "TLS", "tcpRoutes": [{"backends": [{"dynamic": {}}]}]},
        ],
    }
