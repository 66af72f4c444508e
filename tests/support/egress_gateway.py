"""The programs that can carry the egress, behind one face for the same test bodies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.support.egress_pki import EgressPki
from tests.support.endpoint import Endpoint
from tests.support.pki import API_NAME
from tests.support.router_process import RouterProcess, program


@dataclass(frozen=True)
class EgressSpec:
    """How a gateway is set up; times in seconds."""

    api_address: str = ""
    provider_address: str = ""
    name_server: str = ""
    # Whether the gateway is told of it, or finds it as the system's.
    own_resolver: bool = True
    sniff: float = 5.0
    recheck: float = 0.3
    allowed: tuple[str, ...] = ("127.0.0.0/8",)
    intercepting: bool = True
    # Whether the same process is an ingress router too.
    routing: bool = False
    # Envoy only: how long a policy is kept. Tests that do not wait for it see each change at once.
    policy_ttl: float = 0.0
    # Envoy only: a further external processor.
    additional: str | None = None


@dataclass(frozen=True)
class EgressGateway:
    """A running gateway."""

    process: RouterProcess
    host: str
    port: int
    stats: str
    denials: str
    # What runs beside it, and ends with it.
    helpers: tuple[RouterProcess, ...] = ()
    # Further pages, by name.
    pages: dict[str, str] = field(default_factory=dict)

    async def kill(self) -> None:
        for process in (self.process, *self.helpers):
            if process.returncode is None:
                await process.kill()


class EgressDataplane(Protocol):
    name: str

    async def start(self, spec: EgressSpec, pki: EgressPki, directory: Path) -> EgressGateway: ...


class AgentgatewayEgress:
    """`atenet agentgateway -f FILE` with an egress gateway's file."""

    name = "agentgateway"

    async def start(self, spec: EgressSpec, pki: EgressPki, directory: Path) -> EgressGateway:
        file = directory / "egress.yaml"
        document = _document(spec, pki) | (_ingress(spec, pki) if spec.routing else {})
        file.write_text(json.dumps(document, indent=1))
        command = [
            program("atenet"),
            "agentgateway",
            "-f",
            str(file),
            "--bind-address",
            "127.0.0.1",
        ]
        command += [
            f"--egress-sniff-timeout={spec.sniff}",
            f"--egress-recheck-interval={spec.recheck}",
        ]
        command += [f"--egress-allow-cidr={cidr}" for cidr in spec.allowed]
        command += pki.denials_flags()
        if spec.own_resolver:
            command.append(f"--egress-name-server={spec.name_server}")
        else:
            command = resolving(spec.name_server, command, directory)
        process = await RouterProcess.start(command, directory)
        bound = Endpoint.parse(process.ready["listeners"]["tunnels"][0])
        ready = process.ready
        return EgressGateway(process, bound.host, bound.port, ready["stats"], ready["denials"])


def _ingress(spec: EgressSpec, pki: EgressPki) -> dict[str, Any]:
    """An ingress router's keys: one plain port."""
    pod = {"cert": str(pki.pki.router), "key": str(pki.pki.router)}
    api = {**pod, "root": str(pki.pki.service_roots), "hostname": API_NAME}
    policy = {"host": spec.api_address, "policies": {"backendTLS": api}}
    workers = {"backendTLS": {**pod, "root": str(pki.pki.pod_roots)}}
    tunnel = {"proxy": {"backend": "/workers"}, "mode": "connect", "policies": workers}
    route = {"policies": {"substrateIngress": policy}, "backends": [{"backend": "/workers"}]}
    return {
        "gateways": {"default": {"port": 0}},
        "routes": [route],
        "backends": [{"name": "workers", "dynamic": {}, "policies": {"backendTunnel": tunnel}}],
    }


def resolving(name_server: str, command: Sequence[str], directory: Path) -> list[str]:
    """The command with a resolver configuration of its own: a mount that nobody else sees."""
    configuration = directory / "resolv.conf"
    configuration.write_text(f"nameserver {name_server}\noptions timeout:2 attempts:1\n")
    script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(configuration), *command]


def _document(spec: EgressSpec, pki: EgressPki) -> dict[str, Any]:
    ours = {"cert": str(pki.gateway_pod), "key": str(pki.gateway_pod)}
    tls = {**ours, "root": str(pki.pki.service_roots), "hostname": API_NAME}
    control = {"host": spec.api_address, "policies": {"backendTLS": tls}}
    target = {"host": spec.provider_address, "policies": {"backendTLS": tls}}
    providers = [{"uriAuthority": "secrets.example", "target": target}]
    policy = {"substrateEgress": {**control, "credentialProviders": providers}}
    origins = {"dynamic": {}, "policies": {"backendTLS": {"root": str(pki.origin_roots)}}}
    route = [{"policies": policy, "backends": [origins]}]
    ca = {"mode": "dynamicCa", "cert": str(pki.interception_ca), "key": str(pki.interception_ca)}
    inside = [{"protocol": "HTTPS", "tls": ca, "routes": route}] if spec.intercepting else []
    inside += [{"protocol": "HTTP", "routes": route}]
    inside += [{"protocol": "TLS", "tcpRoutes": [{"backends": [{"dynamic": {}}]}]}]
    edge = {"cert": str(pki.gateway), "key": str(pki.gateway), "root": str(pki.actor_roots)}
    tunnels = {"name": "tunnels", "protocol": "HTTPS", "tls": edge}
    return {
        "config": {"statsAddr": "127.0.0.1:0", "readinessAddr": "127.0.0.1:0", "workerThreads": 2},
        "frontendPolicies": {"substrateEgressActorResolution": control},
        "binds": [
            {"port": 0, "tunnelProtocol": "connect", "listeners": [tunnels]},
            {"mode": "internal", "protocol": "AUTO", "listeners": inside},
        ],
    }
