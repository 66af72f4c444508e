"""What `atenet router --mode=egress` can be told: each flag, its default and its why. Durations are seconds."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from atenet.address import Address, loopback_address
from atenet.agentgateway.limits import with_port
from atenet.denials.settings import DenialsSettings
from atenet.errors import AteError
from atenet.flags import flag, seconds
from atenet.router.envoy_settings import ENVOY_MARGIN, EnvoySettings

__all__ = ["EgressSettings"]

# What one decision may wait for: the control plane, a credential provider and a look-up, each with a limit of its own
# (engine, control/egress.rs), one after the other.
_CONTROL_CALLS = 20.0


@dataclass(frozen=True, kw_only=True)
class EgressSettings(EnvoySettings, DenialsSettings):
    """One egress gateway beside Envoy."""

    ateapi_client_cert: Path = flag(
        "Key and chain shown to the control plane and to the credential provider; carries the gateway's SPIFFE ID."
    )
    envoy_cert_path: Path = flag("Key and chain shown to workers; carries the gateway's DNS name.")
    actor_identity_ca_file: Path = flag(
        "The actor-identity authorities, which issue tunnel certificates."
    )

    credential_provider_name: str = flag(
        "The class of the URIs that the provider serves: ate-secret://NAME/...", default="local.ate"
    )
    credential_provider_address: str | None = flag(
        "The credential provider, <host>:<port>; without it: requests that need a secret are refused.",
        default=None,
    )
    credential_provider_ca_file: Path | None = flag(
        "Authorities that its certificate must chain to; without it: the control plane's.",
        default=None,
    )
    credential_provider_server_name: str | None = flag(
        "The DNS name its certificate must carry; without it: the host of its address.",
        default=None,
    )

    listen_address: str = flag("IP of the listener for tunnels.", default="0.0.0.0")  # noqa: S104 - a gateway
    port_tunnels: int = flag("Tunnels of workers, over TLS.", default=443)
    sdsmint_socket: Path | None = flag(
        "Where sdsmint serves leaves; without it: https rules pass nothing.", default=None
    )
    origin_ca_file: Path = flag(
        "Authorities that origins' certificates must chain to.",
        default=Path("/etc/ssl/certs/ca-certificates.crt"),
    )
    egress_allow_cidr: tuple[str, ...] = flag(
        "Addresses that are dialled although they are not public, such as 10.1.0.0/16.", default=()
    )
    egress_name_server: tuple[str, ...] = flag(
        "Who resolves the names of origins, IP or IP:PORT; repeatable, asked in this order. "
        "Without it: the system's resolver.",
        default=(),
    )
    egress_policy_cache_ttl: float = flag(
        "How long an actor's policy is used without asking again, and no policy as well; "
        "0: each decision asks, and only those in flight share an answer.",
        default=10.0,
        kind=seconds,
    )
    egress_recheck_interval: float = flag(
        "How often a live tunnel's actor and rules are looked at again.", default=10.0, kind=seconds
    )
    egress_sniff_timeout: float = flag(
        "A connection of an actor must show what it is within this.", default=5.0, kind=seconds
    )
    egress_credential_ttl: float = flag(
        "How long a credential from a provider is used.", default=30.0, kind=seconds
    )
    egress_connect_timeout: float = flag(
        "A name look-up, and the connection to an origin with its TLS handshake.",
        default=10.0,
        kind=seconds,
    )
    experimental_additional_egress_extproc_service: Address | None = flag(
        "A further external processor (gRPC without TLS), <host>:<port>: it is shown each request as an origin is to "
        "get it, with its credentials, and may change its headers, or refuse it.",
        default=None,
        kind=Address.parse,
    )

    client_idle_timeout: float = flag(
        "Closes an actor's HTTP connection without a request.", default=600.0, kind=seconds
    )
    origin_idle_timeout: float = flag(
        "Closes an unused connection to an origin; each belongs to one tunnel and goes unused with it.",
        default=15.0,
        kind=seconds,
    )
    max_connections: int = flag("Open tunnels.", default=65536)

    port_xds: int = flag("Where Envoy fetches its configuration, on loopback.", default=18001)
    port_extproc: int = flag("Where Envoy asks for decisions, on loopback.", default=50052)
    extproc_socket: Path | None = flag(
        "The same as a Unix socket for this account alone, which then Envoy's must be: whoever can ask speaks for any "
        "actor, and is told its credentials. Without it: the port.",
        default=None,
    )
    envoy_admin_address: Address = flag(
        "Envoy's admin API, on loopback.",
        default=Address("127.0.0.1", 15000),
        kind=loopback_address,
    )

    drain_timeout: float = flag("For running requests afterwards.", default=20.0, kind=seconds)

    status_port: int = flag("/statusz, on loopback.", default=4041)

    def __post_init__(self) -> None:
        self._check_ports("port_tunnels")
        self._check_above_zero(
            "egress_sniff_timeout", "egress_recheck_interval", "egress_connect_timeout"
        )
        for cidr in self.egress_allow_cidr:
            try:
                ipaddress.ip_network(cidr)
            except ValueError as error:
                raise AteError(
                    f"--egress-allow-cidr: {error}",
                    hint="a block of addresses, such as 10.1.0.0/16",
                ) from error

    @property
    def name_servers(self) -> list[str]:
        """With their ports."""
        return [with_port(server) for server in self.egress_name_server]

    @property
    def files(self) -> dict[str, Path]:
        """What must be readable at the start, by flag."""
        names = (
            "ateapi_ca_file",
            "ateapi_client_cert",
            "envoy_cert_path",
            "actor_identity_ca_file",
        )
        found = {name: getattr(self, name) for name in (*names, "origin_ca_file")}
        if self.credential_provider_ca_file:
            found["credential_provider_ca_file"] = self.credential_provider_ca_file
        return found

    @property
    def drain_limit(self) -> float:
        """How long the drain may take once it begins."""
        return self.drain_timeout

    @property
    def decision_timeout(self) -> float:
        """How long Envoy waits for a decision: longer than the longest that one can take."""
        waits = self.egress_sniff_timeout + self.egress_connect_timeout
        return waits + _CONTROL_CALLS + ENVOY_MARGIN
