"""Which processes a local system consists of, and their command lines. Pure: settings in, a list out."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from atenet.credentials.settings import PROVIDER_CLASS
from atenet.identity import spiffe
from atenet.local.hidden import without
from atenet.local.layout import NODE, Layout
from atenet.local.router_config import drain_limit
from atenet.local.settings import LocalSettings

__all__ = ["NAMESPACE", "POOL", "Credentials", "ProcessSpec", "plan"]

NAMESPACE, POOL = "default", "local"


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """One child: how to start it, where it serves, when it is stopped."""

    name: str
    argv: tuple[str, ...]
    addresses: dict[str, str] = field(default_factory=dict)  # what -> host:port
    reported: tuple[
        str, ...
    ] = ()  # further ones, which it picks itself and names in its ready file
    stop_rank: int  # lower ranks are stopped, and gone, before higher ones are told to
    stop_seconds: float  # after SIGTERM; then SIGKILL


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """The files that processes prove themselves with and verify others by."""

    api_pod: Path
    api_service: Path
    router_pod: Path
    router_service: Path
    egress_pod: Path
    egress_service: Path
    provider_service: Path
    atelet: Path
    worker: Path
    pod_roots: Path
    service_roots: Path
    actor_roots: Path
    interception_roots: Path
    interception_ca: tuple[Path, Path]  # certificate, key
    actor_ca: tuple[Path, Path]  # certificate, key


def plan(layout: Layout, settings: LocalSettings, creds: Credentials) -> list[ProcessSpec]:
    """Every child, in no order: each waits for what it needs, so that all start at once.

    `settings` has no port 0 left.
    """
    numbers = range(1, settings.workers + 1)
    return [
        _ateapi(layout, settings, creds),
        _atelet(layout, settings, creds),
        *(_worker(layout, settings, creds, number) for number in numbers),
        _router(layout, settings, creds),
        _egress(layout, settings, creds),
        *([_sdsmint(layout, settings, creds)] if settings.dataplane == "envoy" else []),
        _provider(layout, settings, creds),
    ]


def _command(script: str, *arguments: str | Path) -> tuple[str, ...]:
    """The console script beside our own interpreter: no PATH decides which atenet runs."""
    return (str(Path(sys.executable).parent / script), *map(str, arguments))


def _class(settings: LocalSettings) -> str:
    """What is still `auto` here was not settled: what every machine can do."""
    return "gvisor" if settings.sandbox == "gvisor" else "process"


def _ateapi(layout: Layout, settings: LocalSettings, creds: Credentials) -> ProcessSpec:
    listen = f"{settings.address}:{settings.api_port}"
    stats = f"{settings.address}:{settings.api_stats_port}"
    issuer = f"{settings.address}:{settings.api_issuer_port}"
    argv = _command(
        "ateapi",
        "serve",
        *("--listen", listen),
        *("--store", layout.store),
        *("--server-credential", creds.api_service),
        *("--client-credential", creds.api_pod),
        *("--client-roots", creds.pod_roots),
        *("--node-roots", creds.pod_roots),
        *("--snapshots", settings.snapshots or layout.snapshots),
        *("--default-sandbox", _class(settings)),
        *("--actor-ca-cert", creds.actor_ca[0]),
        *("--actor-ca-key", creds.actor_ca[1]),
        *("--worker-timeout", f"{settings.worker_timeout:g}s"),
        *("--stats-listen", stats),
        *("--issuer", f"https://{issuer}"),
        *("--issuer-listen", issuer),
        *("--ready-file", layout.ready_file("ateapi")),
        *("--log-level", settings.log_level),
    )
    return ProcessSpec(
        name="ateapi",
        argv=argv,
        addresses={"grpc": listen, "stats": stats, "issuer": issuer},
        stop_rank=3,
        stop_seconds=10,
    )


def _atelet(layout: Layout, settings: LocalSettings, creds: Credentials) -> ProcessSpec:
    listen = f"{settings.address}:{settings.atelet_port}"
    argv = _command(
        "atelet",
        *("--node", NODE),
        *("--listen", listen),
        *("--credential", creds.atelet),
        *("--trust", creds.pod_roots),
        *("--api", f"{settings.address}:{settings.api_port}"),
        *("--api-roots", creds.service_roots),
        *("--api-server-name", spiffe.API_SERVER_NAME),
        *("--state-dir", layout.node),
        *("--snapshots", settings.snapshots or layout.snapshots),
        *("--images", layout.images),
        *("--socket", layout.atelet_socket),
        *("--egress-gateway-address", f"{settings.address}:{settings.egress_port}"),
        *("--ready-file", layout.ready_file("atelet")),
        *("--log-level", settings.log_level),
    )
    return ProcessSpec(
        name="atelet", argv=argv, addresses={"grpc": listen}, stop_rank=2, stop_seconds=10
    )


def _worker(
    layout: Layout, settings: LocalSettings, creds: Credentials, number: int
) -> ProcessSpec:
    name, ip = f"worker-{number}", settings.worker_address(number)
    listen, denials = f"{ip}:{settings.tunnel_port}", f"{ip}:{settings.denials_port}"
    argv = _command(
        "ateworker",
        *("--name", name),
        *("--namespace", NAMESPACE),
        *("--pool", POOL),
        *("--listen", listen),
        *("--ip", ip),
        *("--slots", str(settings.slots)),
        *("--sandbox", _class(settings)),
        *("--images", layout.images),
        *("--atelet-socket", layout.atelet_socket),
        *("--socket", layout.worker_socket(name)),
        *("--credential", creds.worker),
        *("--trust", creds.pod_roots),
        *("--state-dir", layout.worker(name)),
        *("--egress-gateway-trust", creds.service_roots),
        *("--denials-listen", denials),
        *("--egress-interception-trust", creds.interception_roots),
        *("--net-prefix", layout.net_prefix(number)),
        *(word for path in settings.allow_host_path for word in ("--allow-host-path", str(path))),
        *("--suspend-grace", f"{settings.suspend_grace:g}s"),
        *("--ready-file", layout.ready_file(name)),
        *("--log-level", settings.log_level),
    )
    return ProcessSpec(
        name=name,
        argv=argv,
        addresses={"atunnel": listen, "denials": denials},
        stop_rank=1,
        stop_seconds=settings.suspend_grace + 10,
    )


def _router(layout: Layout, settings: LocalSettings, creds: Credentials) -> ProcessSpec:
    ports = {
        what: getattr(settings, name) for what, name in _ROUTER_PORTS if name in settings.ports
    }
    envoy = settings.dataplane == "envoy"
    return ProcessSpec(
        name="router",
        argv=_envoy(layout, settings, creds) if envoy else _agentgateway(layout, settings),
        addresses={what: f"{settings.address}:{port}" for what, port in ports.items()},
        reported=("readiness", "status", "envoy_admin") if envoy else (),
        stop_rank=0,
        stop_seconds=settings.drain_delay + drain_limit(settings) + 5,
    )


def _egress(layout: Layout, settings: LocalSettings, creds: Credentials) -> ProcessSpec:
    envoy = settings.dataplane == "envoy"
    ip = settings.address
    denials = f"{ip}:{settings.denials_port}"
    gateway = (
        _envoy_egress(layout, settings, creds) if envoy else _agentgateway_egress(layout, settings)
    )
    argv = (
        *gateway,
        *(
            word
            for server in settings.egress_name_server
            for word in ("--egress-name-server", server)
        ),
        *(word for cidr in settings.egress_allow_cidr for word in ("--egress-allow-cidr", cidr)),
        *("--denials-listen", denials),
        *("--denials-credential", str(creds.egress_service)),
        *("--denials-trust", str(creds.pod_roots)),
        *("--ready-file", str(layout.ready_file("egress"))),
        *("--log-level", settings.log_level),
    )
    stats = f"{ip}:{settings.egress_stats_port}"
    readiness = f"{ip}:{settings.egress_readiness_port}"
    return ProcessSpec(
        name="egress",
        argv=argv,
        addresses={
            "tunnels": f"{ip}:{settings.egress_port}",
            "stats": stats,
            **({} if envoy else {"readiness": readiness}),
            "denials": denials,
        },
        reported=("readiness", "status", "envoy_admin") if envoy else (),
        stop_rank=2,  # after the workers: actors may have last words
        stop_seconds=drain_limit(settings) + 5,
    )


def _agentgateway_egress(layout: Layout, settings: LocalSettings) -> tuple[str, ...]:
    return _command(
        *("atenet", "agentgateway"),
        *("-f", layout.egress_config),
        *("--bind-address", settings.address),
    )


def _envoy_egress(layout: Layout, settings: LocalSettings, creds: Credentials) -> tuple[str, ...]:
    given: dict[str, str | Path] = {
        "--mode": "egress",
        **_ENVOY_BESIDE,
        "--state-dir": layout.egress_state,
        "--listen-address": settings.address,
        "--port-tunnels": str(settings.egress_port),
        "--metrics-listen-addr": f"{settings.address}:{settings.egress_stats_port}",
        "--ateapi-address": f"{settings.address}:{settings.api_port}",
        "--ateapi-ca-file": creds.service_roots,
        "--ateapi-client-cert": creds.egress_pod,
        "--envoy-cert-path": creds.egress_service,
        "--actor-identity-ca-file": creds.actor_roots,
        "--sdsmint-socket": layout.sdsmint_socket,
        "--extproc-socket": layout.decisions_socket,
        "--credential-provider-name": PROVIDER_CLASS,
        "--credential-provider-address": f"{settings.address}:{settings.credentials_port}",
        "--credential-provider-server-name": spiffe.CREDENTIALS_SERVER_NAME,
        # The control plane is near, and a person who changes a policy looks at once.
        "--egress-policy-cache-ttl": "0s",
        "--drain-delay": "0s",
        "--drain-timeout": f"{drain_limit(settings):g}s",
    }
    if settings.egress_origin_roots is not None:
        given["--origin-ca-file"] = settings.egress_origin_roots
    command = _command("atenet", "router", *(word for pair in given.items() for word in pair))
    return (*without(creds.interception_ca[1].parent), *command)


def _sdsmint(layout: Layout, settings: LocalSettings, creds: Credentials) -> ProcessSpec:
    argv = _command(
        *("atenet", "sdsmint"),
        *("--uds-path", layout.sdsmint_socket),
        *(word for path in creds.interception_ca for word in ("--ca-pool-path", path)),
        *("--ready-file", layout.ready_file("sdsmint")),
        *("--log-level", settings.log_level),
    )
    # The gateway, which asks it, stops before.
    return ProcessSpec(name="sdsmint", argv=argv, stop_rank=3, stop_seconds=5)


def _provider(layout: Layout, settings: LocalSettings, creds: Credentials) -> ProcessSpec:
    listen = f"{settings.address}:{settings.credentials_port}"
    argv = _command(
        "atenet",
        "credentials",
        *("--listen", listen),
        *("--credential", creds.provider_service),
        *("--trust", creds.pod_roots),
        *("--directory", layout.secrets),
        *("--environment", "ATE_SECRET_"),
        *("--ready-file", layout.ready_file("credentials")),
        *("--log-level", settings.log_level),
    )
    return ProcessSpec(
        name="credentials", argv=argv, addresses={"grpc": listen}, stop_rank=3, stop_seconds=5
    )


_ROUTER_PORTS = (
    ("https", "https_port"),
    ("connect-tls", "connect_tls_port"),
    ("http", "http_port"),
    ("connect", "connect_port"),
    ("stats", "stats_port"),
    ("readiness", "readiness_port"),
)

# Enough for one machine's own requests; each thread has its own connection to each worker.
_ENVOY_THREADS = 2
# What only Envoy and the router beside it say to each other is on ports that nobody else needs to know.
_ENVOY_BESIDE: dict[str, str | Path] = {
    "--run-envoy": "true",
    "--envoy-concurrency": str(_ENVOY_THREADS),
    "--port-xds": "0",
    "--port-extproc": "0",
    "--status-port": "0",
    "--envoy-admin-address": "127.0.0.1:0",
}


def _agentgateway(layout: Layout, settings: LocalSettings) -> tuple[str, ...]:
    return _command(
        "atenet",
        "agentgateway",
        *("-f", layout.router_config),
        *("--bind-address", settings.address),
        *("--ready-file", layout.ready_file("router")),
        *("--log-level", settings.log_level),
    )


def _envoy(layout: Layout, settings: LocalSettings, creds: Credentials) -> tuple[str, ...]:
    given: dict[str, str | Path] = {
        "--mode": "ingress",
        **_ENVOY_BESIDE,
        "--state-dir": layout.router_state,
        "--listen-address": settings.address,
        "--port-https": str(settings.https_port),
        "--port-connect-tls": str(settings.connect_tls_port),
        "--metrics-listen-addr": f"{settings.address}:{settings.stats_port}",
        "--ateapi-address": f"{settings.address}:{settings.api_port}",
        "--ateapi-ca-file": creds.service_roots,
        "--ateapi-client-cert": creds.router_pod,
        "--envoy-cert-path": creds.router_service,
        "--ingress-client-ca-file": creds.pod_roots,
        "--ingress-allowed-spiffe-ids": spiffe.CLI_ID,
        "--upstream-credential-bundle": creds.router_pod,
        "--upstream-trust-bundle": creds.pod_roots,
        "--worker-port": str(settings.tunnel_port),
        "--parked-request-budget": f"{settings.park_budget:g}s",
        "--parked-request-max": str(settings.park_max),
        "--drain-delay": f"{settings.drain_delay:g}s",
        "--drain-timeout": f"{drain_limit(settings):g}s",
        "--ready-file": layout.ready_file("router"),
        "--log-level": settings.log_level,
    }
    return _command("atenet", "router", *(word for pair in given.items() for word in pair))
