"""The router's static configuration for a local system, in AgentGateway's format. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from atenet.identity import spiffe
from atenet.local.layout import Layout
from atenet.local.settings import LocalSettings

__all__ = ["HEADER", "drain_limit", "duration", "render"]

HEADER = "# Written by `ate up` at every start: change it by the flags of `ate up`, not here.\n"


# What requests in the air have beyond the longest wait of a parked one.
_DRAIN_SECONDS = 10.0


def drain_limit(settings: LocalSettings) -> float:
    """Seconds that the router's drain takes at most, once its delay is over."""
    return settings.park_budget + _DRAIN_SECONDS


def render(layout: Layout, settings: LocalSettings) -> str:
    """YAML text. `settings` has no port 0 left."""
    return HEADER + yaml.safe_dump(_config(layout, settings), sort_keys=False)


def _config(layout: Layout, settings: LocalSettings) -> dict[str, Any]:
    identity, trust = layout.home / "identity" / "router", layout.home / "trust"
    pod, service = str(identity / "pod.pem"), str(identity / "service.pem")
    served = {"cert": service, "key": service}
    ingress = {"substrateIngress": _ingress(settings, pod, str(trust / "service-dns.pem"))}
    return {
        "config": {
            "statsAddr": f"{settings.address}:{settings.stats_port}",
            "readinessAddr": f"{settings.address}:{settings.readiness_port}",
            "connectionMinTerminationDeadline": duration(settings.drain_delay),
            "connectionTerminationDeadline": duration(settings.drain_delay + drain_limit(settings)),
        },
        "gateways": {
            "plain": {"port": settings.http_port, "protocol": "HTTP"},
            "secure": {"port": settings.https_port, "protocol": "HTTPS", "tls": served},
        },
        "binds": [
            {
                "port": settings.connect_port,
                "tunnelProtocol": "connect",
                "listeners": [{"protocol": "HTTP", "routes": []}],
            },
            {
                "port": settings.connect_tls_port,
                "tunnelProtocol": "connect",
                "listeners": [{"protocol": "HTTPS", "tls": served, "routes": []}],
            },
            {
                "mode": "internal",
                "listeners": [
                    {
                        "protocol": "HTTP",
                        "routes": [
                            {
                                "name": "actors-tunnelled",
                                "policies": ingress,
                                "backends": [{"backend": "/workers"}],
                            }
                        ],
                    }
                ],
            },
        ],
        "backends": [
            {
                "name": "workers",
                "dynamic": {},
                "policies": {"backendTunnel": _tunnel(pod, str(trust / "pod-identity.pem"))},
            }
        ],
        "routes": [
            {
                "name": "actors",
                "gateways": ["plain", "secure"],
                "matches": [{"path": {"pathPrefix": "/"}}],
                "policies": ingress,
                "backends": [{"backend": "/workers"}],
            }
        ],
    }


def _ingress(settings: LocalSettings, pod: str, roots: str) -> dict[str, Any]:
    tls = {"cert": pod, "key": pod, "root": roots, "hostname": spiffe.API_SERVER_NAME}
    return {
        "host": f"{settings.address}:{settings.api_port}",
        "policies": {"backendTLS": tls},
        "connectTargetPort": settings.tunnel_port,
        "cacheTtl": duration(settings.cache_ttl),
        "requestParking": {
            "budget": duration(settings.park_budget),
            "max": settings.park_max,
        },
    }


def _tunnel(pod: str, roots: str) -> dict[str, Any]:
    tls = {"cert": pod, "key": pod, "root": roots, "insecureHost": True}
    return {
        "proxy": {"backend": "/workers"},
        "mode": "connect",
        "policies": {"backendTLS": tls},
    }


def duration(seconds: float) -> str:
    """AgentGateway's durations are whole numbers with a unit."""
    return f"{round(seconds * 1000)}ms"
