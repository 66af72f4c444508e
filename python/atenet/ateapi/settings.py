"""What `ateapi serve` can be told: each flag, its default and its why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.address import Address
from atenet.ateapi.mint.issuer import check_issuer
from atenet.ateapi.oidc import verifier_for
from atenet.ateapi.roles import Role, parse_binding
from atenet.ateapi.store.location import StoreLocation, store_location
from atenet.errors import AteError
from atenet.flags import flag, seconds
from atenet.snapshots.opening import SNAPSHOTS_HELP

__all__ = ["KeySettings", "Settings", "StoreSettings"]

STORE_HELP = (
    "The SQLite file, made if it is missing, or postgresql://user@host/database, to be prepared"
    " with `ateapi migrate`; @FILE: what that file says. A password is better in a file (that one,"
    " or PGPASSFILE) than here."
)
SEAL_HELP = (
    "File (0600, 32 bytes at least) that seals the keys that sign tokens, so that the store alone is"
    " not enough to sign. The same for every control plane on a store."
)


@dataclass(frozen=True)
class Settings:
    """One control plane process. Durations are seconds."""

    store: str = flag(STORE_HELP)
    snapshots: str = flag(SNAPSHOTS_HELP)
    server_credential: Path = flag(
        "Key and chain shown to callers; carries this service's DNS name."
    )
    client_credential: Path = flag(
        "Key and chain shown to node agents; carries this process's SPIFFE id."
    )
    client_roots: Path = flag("Authorities that callers must chain to.")
    node_roots: Path = flag("Authorities that node agents must chain to.")
    listen: Address = flag(
        "Where to serve gRPC over mutual TLS (port 0: any free one).",
        default=Address("127.0.0.1", 7443),
        kind=Address.parse,
    )
    stats_listen: Address = flag(
        "Where to serve /metrics, /readyz and /healthz over plain HTTP.",
        default=Address("127.0.0.1", 0),
        kind=Address.parse,
    )
    default_sandbox: str = flag(
        "Sandbox class of templates that name none: process, or gvisor, which keeps memory.",
        default="process",
    )
    front: str = flag(
        "auto: where the store is a SQLite file, a process of the engine's stands before this one"
        " and answers ResumeActor of running actors, and GetActor, by itself; off: none does.",
        default="auto",
    )
    actor_ca_cert: Path | None = flag(
        "The actor-identity authority to issue actors' certificates from.", default=None
    )
    actor_ca_key: Path | None = flag("Its key.", default=None)
    issuer: str | None = flag(
        "The https URL that actors' tokens name as their issuer; without it none are minted.",
        default=None,
    )
    issuer_listen: Address | None = flag(
        "Where to serve the issuer's discovery and keys over HTTPS, with --server-credential.",
        default=None,
        kind=Address.parse,
    )
    role: tuple[str, ...] = flag(
        "<spiffe-id>=<role>: gives an id a role besides the built-in bindings.", default=()
    )
    keys_secret: Path | None = flag(SEAL_HELP, default=None)
    egress_denials: Address | None = flag(
        "host:port of --denials-listen of all egress gateways: each address of the name is asked for what an "
        "actor was lately denied; without it: nobody is.",
        default=None,
        kind=Address.parse,
    )
    egress_denials_roots: Path | None = flag(
        "Authorities that egress gateways must chain to there.", default=None
    )
    worker_denials_port: int | None = flag(
        "Port of every worker's --denials-listen, which is asked for the names that it denied.",
        default=None,
    )
    token_listen: Address | None = flag(
        "Where to serve people who show a bearer token instead of a client certificate.",
        default=None,
        kind=Address.parse,
    )
    token_issuer: str | None = flag("The OpenID Connect issuer of people's tokens.", default=None)
    token_audience: tuple[str, ...] = flag(
        "Whom a token must be for: one of these. Repeatable.", default=()
    )
    token_keys: str = flag(
        "https URL or file of the issuer's key set; default: what the issuer's discovery names.",
        default="",
    )
    token_roots: Path | None = flag(
        "Authorities that the issuer's server must chain to; default: the system's.", default=None
    )
    token_algorithm: tuple[str, ...] = flag(
        "How a token may be signed. Repeatable.", default=("RS256", "ES256")
    )
    token_role_claim: str = flag(
        "The claim that gives roles, by name or path (realm_access.roles).", default="roles"
    )
    token_role: tuple[str, ...] = flag(
        "<value of that claim>=<owner, editor or viewer>. Repeatable.", default=()
    )
    token_leeway: float = flag(
        "By how much the issuer's clock may differ.", default=60.0, kind=seconds
    )
    worker_timeout: float = flag(
        "A worker silent for this long, three heartbeats of 2 s, is lost, unless its node's agent knows it "
        "to live or is silent too.",
        default=6.0,
        kind=seconds,
    )
    node_timeout: float = flag(
        "A node silent for this long has taken its actors' unsaved files with it.",
        default=60.0,
        kind=seconds,
    )
    placement: str = flag(
        "spread: to the worker with the largest free share of slots; pack: to the fullest one "
        "with room, so that whole workers become free.",
        default="spread",
    )
    drain_wait: float = flag(
        "How long actors of a draining worker that are in use may stay; idle ones are suspended "
        "at once.",
        default=60.0,
        kind=seconds,
    )
    audit_keep: float = flag(
        "How long entries of the audit log are kept, a day at least.",
        default=90 * 86400.0,
        kind=seconds,
    )
    otlp_collector_address: Address | None = flag(
        "OTLP collector for spans (over HTTP), <host>:<port>; without it: none.",
        default=None,
        kind=Address.parse,
    )
    trace_sampling: float = flag(
        "The share of calls without a caller's trace that begin one, 0 to 1.", default=1.0
    )
    store_lease: float = flag(
        "PostgreSQL: how long a control plane that died keeps what it was doing from the others;"
        " below the park budget of routers, or a parked request ends before it is taken over.",
        default=2.0,
        kind=seconds,
    )
    drain_timeout: float = flag(
        "How long calls and workflows may take to end after SIGTERM.", default=20.0, kind=seconds
    )
    ready_file: Path | None = flag(
        "Written once serving: JSON of the bound addresses.", default=None
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        if (self.actor_ca_cert is None) != (self.actor_ca_key is None):
            raise AteError("--actor-ca-cert and --actor-ca-key belong together")
        self._check_denials()
        if self.store_lease <= 0:
            raise AteError("--store-lease must be above 0")
        if self.node_timeout < self.worker_timeout:
            raise AteError("--node-timeout must not be shorter than --worker-timeout")
        if self.audit_keep < 86400:
            raise AteError("--audit-keep must be a day (1d) at least")
        if not 0 <= self.trace_sampling <= 1:
            raise AteError(f"--trace-sampling {self.trace_sampling} is not between 0 and 1")
        if self.issuer_listen is not None and self.issuer is None:
            raise AteError("--issuer-listen needs --issuer")
        if self.issuer is not None:
            check_issuer(self.issuer)
        if (self.token_listen is None) != (self.token_issuer is None):
            raise AteError("--token-listen and --token-issuer belong together")
        _either("--front", self.front, "auto", "off")
        _either("--placement", self.placement, "spread", "pack")
        _either("--default-sandbox", self.default_sandbox, "process", "gvisor")
        _ = self.bindings, self.store_location, verifier_for(self)

    @property
    def store_location(self) -> StoreLocation:
        """Raises AteError."""
        return store_location(self.store)

    def _check_denials(self) -> None:
        if (self.egress_denials is None) != (self.egress_denials_roots is None):
            raise AteError("--egress-denials and --egress-denials-roots belong together")
        if self.worker_denials_port is None:
            return
        if self.egress_denials is None:
            raise AteError("--worker-denials-port needs --egress-denials")
        if not 0 < self.worker_denials_port < 65536:
            raise AteError(f"--worker-denials-port {self.worker_denials_port} is no port")

    @property
    def fronted(self) -> bool:
        """Whether callers meet the engine's front."""
        return self.front == "auto" and isinstance(self.store_location, Path)

    @property
    def bindings(self) -> list[tuple[str, Role]]:
        """The given roles, parsed. Raises AteError."""
        return [parse_binding(given) for given in self.role]


def _either(name: str, given: str, one: str, other: str) -> None:
    if given not in (one, other):
        raise AteError(f"{name} {given!r} is neither {one} nor {other}")


@dataclass(frozen=True)
class StoreSettings:
    """What a command that works on the store, and serves nobody, can be told."""

    store: str = flag(STORE_HELP)
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        _ = self.store_location

    @property
    def store_location(self) -> StoreLocation:
        """Raises AteError."""
        return store_location(self.store)


@dataclass(frozen=True)
class KeySettings(StoreSettings):
    """What `ateapi keys` can be told besides."""

    keys_secret: Path | None = flag(SEAL_HELP, default=None)
