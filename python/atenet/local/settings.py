"""What a local system is started with: every flag, variable and default, named once."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from atenet.address import loopback_ipv4, numeric_address
from atenet.errors import AteError
from atenet.flags import flag, flag_name, seconds
from atenet.logs import LEVELS
from atenet.snapshots.opening import check_location

__all__ = ["DATAPLANES", "LocalSettings"]


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """The whole local system. Ports may be 0: a free one. Durations are seconds."""

    dataplane: str = flag(
        "Who carries requests: envoy (clients show a certificate) or agentgateway.", default="envoy"
    )
    sandbox: str = flag(
        "Sandbox class of actors whose template names none: gvisor keeps their memory while they sleep,"
        " process only their files; auto: gvisor where runsc is found (see `ate doctor`).",
        default="auto",
    )
    workers: int = flag("How many workers to run.", default=2)
    slots: int = flag("How many actors each worker holds at a time.", default=4)
    address: str = flag(
        "Loopback address of the control plane and the router.", default="127.0.0.1"
    )
    worker_network: str = flag(
        "Loopback network of the workers: worker N has its Nth address.", default="127.1.0.0/24"
    )
    https_port: int = flag("Router: HTTPS.", default=8443)
    connect_tls_port: int = flag("Router: CONNECT over TLS.", default=8444)
    http_port: int = flag("Router: plaintext HTTP; agentgateway only.", default=8080)
    connect_port: int = flag("Router: plaintext CONNECT; agentgateway only.", default=8081)
    stats_port: int = flag("Router: /metrics.", default=15020)
    readiness_port: int = flag("Router: /readyz.", default=15021)
    api_port: int = flag("ateapi: the control plane's gRPC.", default=7443)
    api_stats_port: int = flag("ateapi: /metrics.", default=7445)
    api_issuer_port: int = flag(
        "ateapi: discovery and keys of actors' tokens, over HTTPS.", default=7446
    )
    atelet_port: int = flag("atelet: the node agent's gRPC.", default=7444)
    egress_port: int = flag("Egress gateway: tunnels of actors.", default=8445)
    egress_stats_port: int = flag("Egress gateway: /metrics.", default=15022)
    egress_readiness_port: int = flag("Egress gateway: /readyz.", default=15023)
    denials_port: int = flag(
        "Egress gateway and workers: recent denials, over HTTPS.", default=7448
    )
    credentials_port: int = flag("Credential provider: gRPC, for the gateway.", default=7447)
    tunnel_port: int = flag("Workers: atunnel, on each worker's own address.", default=8443)
    cache_ttl: float = flag(
        "Router: how long an assignment is reused; agentgateway only: Envoy asks for each request.",
        default=5.0,
        kind=seconds,
    )
    park_budget: float = flag(
        "Router: how long a request may wait for room.", default=5.0, kind=seconds
    )
    park_max: int = flag("Router: how many requests may wait; 0 turns parking off.", default=1024)
    drain_delay: float = flag(
        "Router: how long to serve on after SIGTERM. Nothing on one machine has to notice first.",
        default=0.0,
        kind=seconds,
    )
    egress_name_server: tuple[str, ...] = flag(
        "Egress gateway: who resolves the names of origins, IP or IP:PORT. Repeatable. "
        "Without it: the system's resolver.",
        default=(),
    )
    egress_allow_cidr: tuple[str, ...] = flag(
        "Egress gateway: addresses that may be dialled although they are not public, such as "
        "10.1.0.0/16. Repeatable.",
        default=(),
    )
    egress_origin_roots: Path | None = flag(
        "Egress gateway: PEM with the authorities of origins. Without it: the system's.",
        default=None,
    )
    suspend_grace: float = flag(
        "Workers: how long running requests may go on when their actor is suspended.",
        default=5.0,
        kind=seconds,
    )
    worker_timeout: float = flag(
        "ateapi: a worker silent for this long is lost.", default=6.0, kind=seconds
    )
    allow_host_path: tuple[Path, ...] = flag(
        "Directory that templates may mount read-only, with all below it. Repeatable.", default=()
    )
    snapshots: str | None = flag(
        "Where snapshots are kept: a directory (or file:///directory), or s3://bucket/prefix, with credentials,"
        " region and endpoint from the AWS_… variables of this command. Default: in the state directory.",
        default=None,
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the ports on --address that this system uses."""
        return tuple(
            name for name in PORTS if self.dataplane != "envoy" or name not in _NATIVE_PORTS
        )

    def worker_address(self, number: int) -> str:
        """The address of worker `number` (from 1)."""
        return str(ipaddress.ip_network(self.worker_network)[number])

    def __post_init__(self) -> None:
        """Raises AteError naming the flag that cannot be."""
        if self.dataplane not in DATAPLANES:
            raise AteError(
                f"--dataplane: {self.dataplane!r} is not one of {', '.join(DATAPLANES)}",
                hint=f"use {DATAPLANES[0]}, unless you want the other one",
            )
        if self.sandbox not in SANDBOXES:
            raise AteError(
                f"--sandbox: {self.sandbox!r} is not one of {', '.join(SANDBOXES)}",
                hint="leave it out: auto takes the best that is here",
            )
        if self.log_level.lower() not in LEVELS:
            raise AteError(
                f"--log-level: {self.log_level!r} is not one of {', '.join(LEVELS)}",
                hint="leave it out for info",
            )
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise AteError(
                    f"{flag_name(name)}: {value:g} is out of range",
                    hint=f"use a value from {low} to {high}",
                )
        _check_loopback("--address", self.address)
        self._check_egress()
        self._check_network()
        self._check_host_paths()
        self._check_ports()
        if self.snapshots is not None:
            check_location(self.snapshots)

    def as_json(self) -> dict[str, Any]:
        """For the supervisor's command line; `from_json` is its other half."""
        paths = [str(path) for path in self.allow_host_path]
        roots = None if self.egress_origin_roots is None else str(self.egress_origin_roots)
        return {**asdict(self), "allow_host_path": paths, "egress_origin_roots": roots}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> LocalSettings:
        roots = given["egress_origin_roots"]
        read = {
            "allow_host_path": tuple(map(Path, given["allow_host_path"])),
            "egress_name_server": tuple(given["egress_name_server"]),
            "egress_allow_cidr": tuple(given["egress_allow_cidr"]),
            "egress_origin_roots": None if roots is None else Path(roots),
        }
        return cls(**{**given, **read})

    def _check_network(self) -> None:
        name = "--worker-network"
        try:
            network = ipaddress.ip_network(self.worker_network)
        except ValueError as error:
            raise AteError(
                f"{name}: {error}", hint="give a loopback network, e.g. 127.1.0.0/24"
            ) from error
        _check_loopback(name, str(network.network_address))
        if network.num_addresses < self.workers + 2:
            raise AteError(
                f"{name}: {network} has no room for {self.workers} workers",
                hint="give a larger network (a /24 holds 254), or fewer workers",
            )
        for number in range(1, self.workers + 1):
            if self.worker_address(number) == self.address:
                raise AteError(
                    f"--address: {self.address} is worker-{number}'s",
                    hint=f"give an address outside {network}, or another {name}",
                )

    def _check_egress(self) -> None:
        for server in self.egress_name_server:
            try:
                numeric_address(server, 53)
            except ValueError as error:
                raise AteError(
                    f"--egress-name-server: {error}", hint="give an address, e.g. 127.0.0.53:5353"
                ) from error
        for cidr in self.egress_allow_cidr:
            try:
                ipaddress.ip_network(cidr)
            except ValueError as error:
                raise AteError(
                    f"--egress-allow-cidr: {error}", hint="give a network, e.g. 10.1.0.0/16"
                ) from error
        roots = self.egress_origin_roots
        if roots is not None and not (roots.is_absolute() and roots.is_file()):
            raise AteError(
                f"--egress-origin-roots: {roots} is not the absolute path of a file",
                hint="give a PEM file of authorities",
            )
        if roots is not None and _CERTIFICATE not in roots.read_bytes():
            raise AteError(
                f"--egress-origin-roots: {roots} holds no certificate",
                hint="give a PEM file of authorities",
            )

    def _check_host_paths(self) -> None:
        for path in self.allow_host_path:
            if not (path.is_absolute() and path.is_dir()):
                raise AteError(
                    f"--allow-host-path: {path} is not the absolute path of a directory",
                    hint="give an existing directory, e.g. --allow-host-path $PWD/examples",
                )

    def _check_ports(self) -> None:
        seen: dict[int, str] = {}
        for name in self.ports:
            port = getattr(self, name)
            if port and port in seen:
                raise AteError(
                    f"{flag_name(name)}: {port} is also {flag_name(seen[port])}",
                    hint="every port needs a number of its own; 0 picks a free one",
                )
            seen[port] = name
        if self.tunnel_port == self.denials_port:
            raise AteError(
                f"--tunnel-port: {self.tunnel_port} is also --denials-port, which workers serve too",
                hint="every port needs a number of its own",
            )


_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
SANDBOXES = ("auto", "gvisor", "process")
DATAPLANES = ("envoy", "agentgateway")

# Ports on --address. The tunnel port is on the workers' own addresses.
PORTS = (
    "https_port",
    "connect_tls_port",
    "http_port",
    "connect_port",
    "stats_port",
    "readiness_port",
    "api_port",
    "api_stats_port",
    "api_issuer_port",
    "atelet_port",
    "egress_port",
    "egress_stats_port",
    "egress_readiness_port",
    "denials_port",
    "credentials_port",
)

# What only the native dataplane serves.
_NATIVE_PORTS = ("http_port", "connect_port", "readiness_port", "egress_readiness_port")

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("workers", 1, 200),
    ("slots", 1, 1000),
    *((name, 0, 65535) for name in PORTS),
    ("tunnel_port", 1, 65535),
    ("cache_ttl", 0, 3600),
    ("park_budget", 0.001, 600),
    ("park_max", 0, 1_000_000),
    ("drain_delay", 0, 600),
    ("suspend_grace", 0, 600),
    ("worker_timeout", 4, 600),  # a heartbeat comes every 2 s; one may be late
)


def _check_loopback(name: str, address: str) -> None:
    try:
        loopback_ipv4(address)
    except ValueError as error:
        raise AteError(
            f"{name}: {error}", hint="a local system serves this machine only: use 127.x.y.z"
        ) from error
