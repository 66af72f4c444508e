"""The static files of agentgateway, for its ConfigMaps. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from atenet.identity import spiffe
from atenet.setup.config import Config
from atenet.setup.objects import volumes
from atenet.setup.objects.names import WORKER_PORT, Port

__all__ = ["egress_file", "router_file"]

_HEADER = "# Written by ate-setup: change it by its configuration, not here.\n"
_API = f"{spiffe.API_SERVER_NAME}:443"


def router_file(config: Config) -> str:
    """Of atenet-router."""
    served = {"cert": volumes.SERVING_FILE, "key": volumes.SERVING_FILE}
    policies = {"substrateIngress": _ingress(config)}
    to_workers = [{"backend": "/workers"}]
    tunnelled = {"name": "actors-tunnelled", "policies": policies, "backends": to_workers}
    return _text(
        {
            "config": _process(config, config.router_drain),
            **_tracing(config),
            "gateways": {
                "plain": {"port": Port.HTTP, "protocol": "HTTP"},
                "secure": {"port": Port.HTTPS, "protocol": "HTTPS", "tls": served},
            },
            "binds": [
                _connect(Port.CONNECT, {"protocol": "HTTP"}),
                _connect(Port.CONNECT_TLS, {"protocol": "HTTPS", "tls": served}),
                {
                    "mode": "internal",
                    "listeners": [{"protocol": "HTTP", "routes": [tunnelled]}],
                },
            ],
            "backends": [
                {"name": "workers", "dynamic": {}, "policies": {"backendTunnel": _tunnel()}}
            ],
            "routes": [
                {
                    "name": "actors",
                    "gateways": ["plain", "secure"],
                    "matches": [{"path": {"pathPrefix": "/"}}],
                    "policies": policies,
                    "backends": to_workers,
                }
            ],
        }
    )


def egress_file(config: Config) -> str:
    """Of atenet-egress."""
    control = _peer(_API, spiffe.API_SERVER_NAME)
    provider = config.provider
    providers = [
        {
            "uriAuthority": provider.uri_authority,
            "target": _peer(provider.address, provider.server_name or provider.host),
        }
        for provider in ([provider] if provider else [])
    ]
    route = {
        "policies": {"substrateEgress": {**control, "credentialProviders": providers}},
        "backends": [{"dynamic": {}, "policies": {"backendTLS": {}}}],
    }
    key = volumes.authority_file("interception")
    tls = {
        "cert": volumes.SERVING_FILE,
        "key": volumes.SERVING_FILE,
        "root": volumes.trust_file("actor-identity"),
    }
    return _text(
        {
            "config": _process(config, config.egress_drain),
            "frontendPolicies": {"substrateEgressActorResolution": control},
            "binds": [
                {
                    "port": Port.TUNNELS,
                    "tunnelProtocol": "connect",
                    "listeners": [{"name": "tunnels", "protocol": "HTTPS", "tls": tls}],
                },
                {
                    "mode": "internal",
                    "protocol": "AUTO",
                    "listeners": [
                        {
                            "protocol": "HTTPS",
                            "tls": {"mode": "dynamicCa", "cert": key, "key": key},
                            "routes": [route],
                        },
                        {"protocol": "HTTP", "routes": [route]},
                        {"protocol": "TLS", "tcpRoutes": [{"backends": [{"dynamic": {}}]}]},
                    ],
                },
            ],
        }
    )


def _text(file: dict[str, Any]) -> str:
    return _HEADER + yaml.dump(file, Dumper=_Plain, sort_keys=False)


class _Plain(yaml.SafeDumper):
    """Without anchors: parts that stand twice are written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _process(config: Config, drain: float) -> dict[str, Any]:
    return {
        "statsAddr": f"0.0.0.0:{Port.STATS}",
        "readinessAddr": f"0.0.0.0:{Port.READINESS}",
        "connectionMinTerminationDeadline": _duration(config.drain_delay),
        "connectionTerminationDeadline": _duration(config.drain_delay + drain),
        "workerThreads": config.proxy_threads,
        "logging": {"level": config.log_level},
    }


def _tracing(config: Config) -> dict[str, Any]:
    if config.otlp_collector is None:
        return {}
    return {"frontendPolicies": {"tracing": {"host": config.otlp_collector}}}


def _connect(port: int, listener: dict[str, Any]) -> dict[str, Any]:
    return {"port": port, "tunnelProtocol": "connect", "listeners": [{**listener, "routes": []}]}


def _ingress(config: Config) -> dict[str, Any]:
    return {
        **_peer(_API, spiffe.API_SERVER_NAME),
        "connectTargetPort": WORKER_PORT,
        "requestParking": {
            "budget": _duration(config.parked_request_budget),
            "max": config.parked_request_max,
        },
    }


def _tunnel() -> dict[str, Any]:
    tls = {
        "cert": volumes.IDENTITY_FILE,
        "key": volumes.IDENTITY_FILE,
        "root": volumes.trust_file("pod-identity"),
        "insecureHost": True,  # of no effect in ours, which checks the SPIFFE id; AgentGateway needs it
    }
    return {"proxy": {"backend": "/workers"}, "mode": "connect", "policies": {"backendTLS": tls}}


def _peer(host: str, name: str) -> dict[str, Any]:
    tls = {
        "cert": volumes.IDENTITY_FILE,
        "key": volumes.IDENTITY_FILE,
        "root": volumes.trust_file("service-dns"),
        "hostname": name,
    }
    return {"host": host, "policies": {"backendTLS": tls}}


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
