"""What `atenet router --mode=ingress` can be told: each flag, its default and its why. Durations are seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from atenet.address import Address, loopback_address
from atenet.errors import AteError
from atenet.flags import flag, seconds
from atenet.identity import spiffe
from atenet.router.envoy_settings import ENVOY_MARGIN, EnvoySettings

__all__ = ["Settings"]

# As the specification spells them; compared byte by byte afterwards.
_SPIFFE_ID = re.compile(r"spiffe://[a-z0-9._-]{1,255}(/[A-Za-z0-9._-]+)+")

# An attempt of ResumeActor in the air is not cut by the budget; it has this deadline of its own (engine, control.rs).
_ATTEMPT = 30.0
# What the drain waits beyond the park budget when no drain timeout is given.
_DRAIN_MARGIN = 15.0


@dataclass(frozen=True, kw_only=True)
class Settings(EnvoySettings):
    """One ingress router beside Envoy."""

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

    listen_address: str = flag("IP of the two client listeners.", default="0.0.0.0")  # noqa: S104 - a router
    port_https: int = flag("Requests over TLS.", default=8443)
    port_connect_tls: int = flag("CONNECT over TLS.", default=8444)
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

    drain_timeout: float = flag(
        "For running requests afterwards; 0: the park budget and 15s.", default=0.0, kind=seconds
    )

    status_port: int = flag("/statusz, on loopback.", default=4040)
    otlp_collector_address: Address | None = flag(
        "OTLP collector for spans (over HTTP), <host>:<port>; without it: none.",
        default=None,
        kind=Address.parse,
    )

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
        self._check_ports("port_https", "port_connect_tls", "worker_port")
        self._check_above_zero(
            "parked_request_budget", "parked_request_retry_interval", "worker_connect_timeout"
        )
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
    def drain_limit(self) -> float:
        """How long the drain may take once it begins."""
        return self.drain_timeout or self.parked_request_budget + _DRAIN_MARGIN

    @property
    def decision_timeout(self) -> float:
        """How long Envoy waits for a decision: longer than the longest that one can take."""
        return self.parked_request_budget + _ATTEMPT + ENVOY_MARGIN
