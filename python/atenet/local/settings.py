"""What a local system is started with: every flag, variable and default, named once."""

from __future__ import annotations

import ipaddress
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from atenet.errors import AteError

__all__ = ["PORTS", "LocalSettings", "flag_of"]


def _setting(default: Any, help_text: str) -> Any:
    """A field whose `help` is the flag's text on the command line and in the documentation."""
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """The whole local system. Ports may be 0: a free one. Durations are in the unit they name."""

    workers: int = _setting(2, "How many workers to run.")
    slots: int = _setting(4, "How many actors each worker holds at a time.")
    address: str = _setting("127.0.0.1", "Loopback address of the control plane and the router.")
    worker_network: str = _setting(
        "127.1.0.0/24", "Loopback network of the workers: worker N gets its Nth address."
    )
    https_port: int = _setting(8443, "Router: HTTPS.")
    connect_tls_port: int = _setting(8444, "Router: CONNECT over TLS.")
    http_port: int = _setting(8080, "Router: plaintext HTTP.")
    connect_port: int = _setting(8081, "Router: plaintext CONNECT.")
    stats_port: int = _setting(15020, "Router: /metrics.")
    readiness_port: int = _setting(15021, "Router: /readyz.")
    api_port: int = _setting(7443, "ateapi: the control plane's gRPC.")
    api_stats_port: int = _setting(7445, "ateapi: /metrics.")
    atelet_port: int = _setting(7444, "atelet: the node agent's gRPC.")
    tunnel_port: int = _setting(8443, "Workers: atunnel, on each worker's own address.")
    cache_ttl_ms: int = _setting(5000, "Router: how long an assignment is reused.")
    park_budget_ms: int = _setting(5000, "Router: how long a request may wait for room.")
    park_max: int = _setting(1024, "Router: how many requests may wait; 0 turns parking off.")
    drain_delay_ms: int = _setting(
        0, "Router: how long to serve on after SIGTERM. Nothing on one machine needs to notice."
    )
    suspend_grace: float = _setting(
        5.0, "Workers: seconds that an actor's running requests have when it is suspended."
    )
    worker_timeout: float = _setting(6.0, "ateapi: seconds after which a silent worker is lost.")
    allow_host_path: tuple[str, ...] = _setting(
        (), "Directory that templates may mount read-only (and what is below it). Repeatable."
    )
    log_level: str = _setting("info", "debug, info, warning or error.")

    def worker_address(self, number: int) -> str:
        """The address of worker `number` (from 1)."""
        return str(ipaddress.ip_network(self.worker_network)[number])

    def check(self) -> None:
        """Raises AteError naming the flag that cannot be."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise AteError(
                    f"{flag_of(name)}: {value} is out of range",
                    hint=f"use a value from {low} to {high}",
                )
        _check_loopback("--address", self.address)
        self._check_network()
        self._check_host_paths()
        self._check_ports()

    def _check_network(self) -> None:
        flag = "--worker-network"
        try:
            network = ipaddress.ip_network(self.worker_network)
        except ValueError as error:
            raise AteError(
                f"{flag}: {error}", hint="give a loopback network, e.g. 127.1.0.0/24"
            ) from error
        _check_loopback(flag, str(network.network_address))
        if network.num_addresses < self.workers + 2:
            raise AteError(
                f"{flag}: {network} has no room for {self.workers} workers",
                hint="give a larger network (a /24 holds 254), or fewer workers",
            )

    def _check_host_paths(self) -> None:
        for path in self.allow_host_path:
            if not Path(path).is_dir():
                raise AteError(
                    f"--allow-host-path: {path} is not a directory",
                    hint="give an existing directory by its absolute path",
                )

    def _check_ports(self) -> None:
        seen: dict[int, str] = {}
        for name in PORTS:
            port = getattr(self, name)
            if port and port in seen:
                raise AteError(
                    f"{flag_of(name)}: {port} is also {flag_of(seen[port])}",
                    hint="every port needs a number of its own; 0 picks a free one",
                )
            seen[port] = name


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
    "atelet_port",
)

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("workers", 1, 200),
    ("slots", 1, 1000),
    *((name, 0, 65535) for name in PORTS),
    ("tunnel_port", 1, 65535),
    ("cache_ttl_ms", 0, 3_600_000),
    ("park_budget_ms", 1, 600_000),
    ("park_max", 0, 1_000_000),
    ("drain_delay_ms", 0, 600_000),
    ("suspend_grace", 0, 600),
    ("worker_timeout", 0.5, 600),
)


def flag_of(name: str) -> str:
    """`https_port` -> `--https-port`."""
    return "--" + name.replace("_", "-")


def _check_loopback(flag: str, address: str) -> None:
    try:
        loopback = ipaddress.IPv4Address(address).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise AteError(
            f"{flag}: {address} is not an IPv4 loopback address",
            hint="a local system serves this machine only: use 127.x.y.z",
        )


def settings_fields() -> tuple[Field[Any], ...]:
    """The settings in order, for whoever makes flags or documentation of them."""
    return fields(LocalSettings)
