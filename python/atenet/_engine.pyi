"""The Rust engine. Calls that may wait release the GIL; errors are EngineError or ValueError."""

from os import PathLike
from typing import Self, final

__version__: str

class EngineError(Exception):
    """What the engine could not do: the phase, the peer and the cause, one line."""

def log_to_stderr(process: str, level: str) -> None:
    """Engine log lines as JSON objects on stderr, in the shape of atenet.logs. Call it once, at process start.

    `level`: debug, info, warning or error. Raises ValueError for another word.
    """

def check_name(name: str) -> None:
    """Checks one resource name (RFC 1123 label, <= 63). Raises ValueError saying what is wrong."""

def parse_actor_ref(value: str) -> tuple[str, str]:
    """Splits `<atespace>/<actor>`. Raises ValueError; nothing is trimmed."""

def normal_host(host: str) -> str:
    """The one spelling of a host: lower case, no final dot, addresses in their usual form, IPv6 in brackets.

    Raises ValueError saying what is wrong with one that readers could understand differently.
    """

def parse_credential_uri(uri: str) -> tuple[str, list[str]]:
    """An `ate-secret://` URI as its provider class and the path's segments: the provider's name, then its own.

    Raises ValueError saying what is wrong.
    """

def validate_egress_policy(policy: bytes) -> list[tuple[str, str]]:
    """What is wrong with the rules of a serialised `ateapi.EgressPolicy`: (field, message), at most 100.

    A field is a path such as `egress_policy.rules[3].https.hostnames[0]`; a message says what is allowed:
    `must be in lower case`. The metadata is not looked at. Raises ValueError when the bytes are no EgressPolicy.
    """

@final
class EgressDecision:
    """What would happen to a connection or a request."""

    @property
    def allowed(self) -> bool: ...
    @property
    def host(self) -> str | None:
        """The host in its one spelling; None when it could not be read."""
    @property
    def rule(self) -> int | None:
        """The place of the deciding rule in the policy, from 0; None when nothing passes."""
    @property
    def rule_kind(self) -> str | None:
        """`http`, `https` or `tls_passthrough`."""
    @property
    def reason(self) -> str | None:
        """Why nothing passes: `no-egress-policy`, `no-egress-rule`, `egress-port-denied` or `bad-host`."""
    @property
    def replaces(self) -> list[str]:
        """The headers whose value the rule replaces, in lower case."""
    @property
    def problem(self) -> str | None:
        """What is wrong with the host, or with the rule's effects (requests then fail)."""

@final
class EgressPolicy:
    """A compiled egress policy. Decisions cost the same whatever the number of its rules."""

    @staticmethod
    def compile(policy: bytes) -> EgressPolicy:
        """Compiles a serialised `ateapi.EgressPolicy`; a rule that is malformed covers nothing.

        Raises ValueError when the bytes are no EgressPolicy.
        """

    def decide(self, kind: str, name: str, port: int) -> EgressDecision:
        """`kind`: `http` (cleartext) or `tls`; `name`: as in SNI or Host, without a port; `port`: the one dialled.

        Raises ValueError for another kind, OverflowError for a port beyond 65535.
        """

    def covers(self, name: str) -> bool:
        """Whether any rule covers the name, on whatever port: what the DNS relay may answer."""

    def decision_seconds(self, kind: str, names: list[str], port: int, rounds: int) -> float:
        """Seconds for one decision, its name's parsing included: the mean over `rounds` times all names. For measures.

        Raises ValueError naming the argument.
        """

def minting_seconds(cert: str | PathLike[str], key: str | PathLike[str], count: int) -> float:
    """Seconds for one interception leaf with its TLS server: the mean over `count` new names. For measures.

    `cert`, `key`: PEM files of the authority. Raises EngineError for files of no use.
    """

def socket_in_netns(netns: str) -> int:
    """A new non-blocking, close-on-exec IPv4 TCP socket made inside the network namespace at this path.

    The caller owns the descriptor. Raises OSError.
    """

TUNNEL_STREAMS: int
"""How many tunnels atunnel takes on one connection."""

@final
class Tunnel:
    """atunnel, the worker's end: accepts the router's CONNECT tunnels and relays them to actors."""

    def __new__(cls, config: str) -> Self:
        """`config`: JSON, see `tunnel` in engine/atenet-engine/src/config.rs. Raises ValueError naming the field."""

    def start(self) -> str:
        """Binds and serves. Returns the bound `ip:port`. Raises EngineError."""

    def activate(self, atespace: str, name: str, uid: str, *, netns: str, address: str) -> None:
        """Opens ingress for one incarnation. `netns`: path of the namespace to dial from; `address`: the actor's IP.

        The same uid again is a no-op; another uid of the same name replaces the older one, whose tunnels are reset.
        """

    def deactivate(self, atespace: str, name: str, uid: str, *, grace_seconds: float) -> bool:
        """Closes ingress: new tunnels get 421 at once, running ones have `grace_seconds`, then a reset.

        Returns when none is left. False when this uid was not active (a newer incarnation is left alone).
        """

    def close_if_idle(self, atespace: str, name: str, uid: str, *, idle_seconds: float) -> bool:
        """Closes ingress to new tunnels if no request is in flight and none was for `idle_seconds`.

        False, and nothing changed, otherwise; also when this uid is not active. `deactivate` ends what is left.
        """

    def stats(self) -> str:
        """JSON: open connections, tunnels by actor, totals."""

    def close(self, timeout_seconds: float) -> None:
        """Stops accepting, resets what is left after the timeout, ends the runtime."""

@final
class Capture:
    """What actors dial, and what they ask of DNS: their connections' way to the egress gateway, and their relays."""

    def __new__(cls, config: str) -> Self:
        """`config`: JSON, see engine/atenet-engine/src/config/capture.rs. Binds nothing yet.

        Raises ValueError naming the field, EngineError when the gateway's trust bundle is unusable.
        """

    def open(self, atespace: str, name: str, uid: str, *, netns: str, gateway: str | None) -> None:
        """Binds one activation's capture port and DNS relay in the network namespace at `netns`.

        `gateway`: the egress gateway's host:port; None: whatever the actor dials is refused. Until it has a
        credential every connection is reset, and until it has a policy every question is answered with SERVFAIL.
        """

    def set_credential(self, uid: str, *, chain: list[bytes], key: bytes, not_after: float) -> None:
        """What connections show the gateway from now on. `chain`: DER, leaf first; `key`: PKCS #8, DER; `not_after`:
        seconds since 1970, after which new connections are reset. Raises EngineError when the two do not fit."""

    def drop_credential(self, uid: str) -> None:
        """New connections are reset; those that run go on."""

    def set_policy(self, uid: str, policy: bytes) -> None:
        """Which names the relay answers from now on: a serialised `ateapi.EgressPolicy`; empty bytes: none."""

    def confirm_policy(self, uid: str) -> None:
        """The policy that was set is still what there is. One that nobody confirms for too long is not used."""

    def close_actor(self, uid: str) -> bool:
        """Closes both and resets what runs; returns when nothing is left. False when the uid was not open."""

    def stats(self) -> str:
        """JSON: {actors: [...]}, see engine/atenet-engine/src/capture/stats.rs."""

    def denials(self, actor: str) -> str:
        """The names that the relay lately denied to `<atespace>/<actor>`, as `Router.denials` tells them."""

    def metrics(self) -> str:
        """Prometheus text."""

    def close(self) -> None:
        """Ends every actor's, then the runtime."""

def refusals(dataplane: str) -> str:
    """The error table as JSON: a list of {reason, status, body, grpc_status, retry_after}.

    `dataplane`: `agentgateway` or `envoy`; they differ in a few statuses. Raises ValueError.
    """

def egress_denials() -> str:
    """The rows by which Envoy answers egress by itself, as JSON by name.

    Each is {reason, status, body, grpc_status, retry_after}; the name is the reason, and `/` and a word where several
    rows have one.
    """

@final
class ApiFront:
    """What stands before ateapi's own server: answers warm calls by a read of the store, carries the others.

    Not for a process that has the store's SQLite file open by another copy of SQLite, such as Python's: POSIX locks
    are one process's, and two copies in it would undo each other's.
    """

    def __new__(cls, config: str) -> Self:
        """`config`: JSON, see engine/atenet-engine/src/config/api_front.rs. Raises ValueError naming the field."""

    def start(self) -> str:
        """Binds and serves. Returns the bound `ip:port`. Raises EngineError."""

    def answered(self) -> str:
        """JSON: how many calls it answered by itself, all with OK, by method."""

    def close(self, timeout_seconds: float) -> None:
        """Accepts nothing new, lets calls end, cuts what is left after the timeout, ends the runtime."""

@final
class ExtProc:
    """The decisions that Envoy asks for, over its external processing APIs."""

    def __new__(cls, config: str, mode: str = "ingress") -> Self:
        """`config`: JSON. `mode`: `ingress` (engine/atenet-engine/src/config/extproc.rs) or `egress` (egress.rs).

        Raises ValueError naming the field.
        """

    def start(self) -> str:
        """Binds and serves. Returns the bound `ip:port`, or the path of the Unix socket. Raises EngineError."""

    def status(self) -> str:
        """JSON: {deciding, requests: [newest first]}; no header values, no query strings.

        Beside these for ingress `parking` ({active, max}), for egress `tunnels` (open ones).
        """

    def metrics(self) -> str:
        """Prometheus text."""

    def denials(self, actor: str) -> str:
        """What egress lately denied to `<atespace>/<actor>`: a JSON list, newest first.

        Raises ValueError for another text, EngineError for ingress.
        """

    def close(self, timeout_seconds: float) -> None:
        """Accepts nothing new, waits for what is being decided, drops the rest and ends the runtime."""

@final
class Router:
    """The native ingress router."""

    def __new__(cls, config: str) -> Self:
        """`config`: JSON, see `router` in engine/atenet-engine/src/config.rs. Raises ValueError naming the field."""

    def start(self) -> dict[str, list[str]]:
        """Binds and serves. Returns each listener's bound addresses by name. Raises EngineError."""

    def drain(self) -> bool:
        """Marks not ready, serves on for the drain delay, then drains; returns when empty or at the drain timeout.

        False: the timeout came first and what was left has been reset.
        """

    def metrics(self) -> str:
        """Prometheus text."""

    def denials(self, actor: str) -> str:
        """What the egress gateway lately denied to `<atespace>/<actor>`, newest first: JSON list of objects.

        first, last (RFC 3339), times, kind (`http`, `tls` or null), host, port, rule (each may be null), reason,
        detail. Raises ValueError for what is no actor's name, EngineError when it does not run.
        """

    def close(self) -> None:
        """Stops at once and ends the runtime."""

__all__ = [
    "TUNNEL_STREAMS",
    "ApiFront",
    "Capture",
    "EgressDecision",
    "EgressPolicy",
    "EngineError",
    "ExtProc",
    "Router",
    "Tunnel",
    "__version__",
    "check_name",
    "egress_denials",
    "log_to_stderr",
    "minting_seconds",
    "normal_host",
    "parse_actor_ref",
    "parse_credential_uri",
    "refusals",
    "socket_in_netns",
    "validate_egress_policy",
]
