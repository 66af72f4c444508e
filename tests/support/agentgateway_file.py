"""The native dataplane's configuration: AgentGateway's file, and flags for what that cannot say."""

import json
from pathlib import Path
from typing import Any

from tests.support.pki import API_NAME, Pki
from tests.support.router_spec import RouterSpec

LISTENERS = ("http", "https", "http-connect", "https-connect")
_WORKERS = "/workers"


def write_file(spec: RouterSpec, pki: Pki, directory: Path) -> Path:
    """Writes the file (JSON, which is YAML) with every port left to the system."""
    file = directory / "agentgateway.yaml"
    file.write_text(json.dumps(_document(spec, pki), indent=1))
    return file


def flags(spec: RouterSpec) -> list[str]:
    """The settings that AgentGateway's file has no key for."""
    flags = [
        f"--stream-idle-timeout={_duration(spec.stream_idle)}",
        f"--header-timeout={_duration(spec.header_limit)}",
        f"--header-fields={spec.header_fields}",
        f"--worker-handshake-timeout={_duration(spec.handshake_timeout)}",
    ]
    if spec.cache_entries is not None:
        flags.append(f"--cache-entries={spec.cache_entries}")
    return flags


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _document(spec: RouterSpec, pki: Pki) -> dict[str, Any]:
    edge = {"cert": str(pki.router_edge), "key": str(pki.router_edge)}
    tunnelled = {"policies": _ingress(spec, pki), "backends": [{"backend": _WORKERS}]}
    return {
        "config": _process(spec),
        "frontendPolicies": _frontend(spec),
        "gateways": {"http": {"port": 0}, "https": {"port": 0, "tls": edge}},
        "routes": [{"gateways": ["http", "https"], **tunnelled}],
        "binds": [
            _connect({"name": "http-connect"}),
            _connect({"name": "https-connect", "tls": edge}),
            {"mode": "internal", "listeners": [{"routes": [tunnelled]}]},
        ],
        "backends": [_workers(spec, pki)],
    }


def _process(spec: RouterSpec) -> dict[str, Any]:
    return {
        "statsAddr": "127.0.0.1:0",
        "readinessAddr": "127.0.0.1:0",
        "workerThreads": 2,
        "connectionMinTerminationDeadline": _duration(spec.drain_delay),
        "connectionTerminationDeadline": _duration(spec.drain_delay + spec.drain_timeout),
        "backend": {
            "connectTimeout": _duration(spec.connect_timeout),
            "poolIdleTimeout": _duration(spec.actor_idle),
        },
    }


def _frontend(spec: RouterSpec) -> dict[str, Any]:
    policies: dict[str, Any] = {
        "http": {"http1IdleTimeout": _duration(spec.client_idle)},
        "tls": {"handshakeTimeout": _duration(spec.tls_handshake)},
    }
    if spec.tracing is not None:
        policies["tracing"] = {
            "host": spec.tracing,
            "protocol": spec.tracing_protocol,
            "randomSampling": 1.0,
        }
    return policies


def _connect(listener: dict[str, Any]) -> dict[str, Any]:
    return {"port": 0, "tunnelProtocol": "connect", "listeners": [listener]}


def _ingress(spec: RouterSpec, pki: Pki) -> dict[str, Any]:
    tls = {"cert": str(pki.router), "key": str(pki.router), "root": str(pki.service_roots)}
    return {
        "substrateIngress": {
            "host": spec.api_address,
            "policies": {"backendTLS": {**tls, "hostname": API_NAME}},
            "cacheTtl": _duration(spec.cache_ttl),
            "requestParking": {
                "budget": _duration(spec.park_budget),
                "max": spec.park_max,
                "retryInterval": _duration(spec.retry_interval),
                "retryFactor": spec.retry_factor,
            },
        }
    }


def _workers(spec: RouterSpec, pki: Pki) -> dict[str, Any]:
    credential = str(spec.worker_credential or pki.router)
    tls = {"cert": credential, "key": credential, "root": str(pki.pod_roots), "insecureHost": True}
    tunnel = {"proxy": {"backend": _WORKERS}, "mode": "connect", "policies": {"backendTLS": tls}}
    return {"name": "workers", "dynamic": {}, "policies": {"backendTunnel": tunnel}}
