"""What a worker is started with: every flag, its default and its meaning, named once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from atenet._engine import check_name
from atenet.address import Address
from atenet.errors import AteError
from atenet.flags import flag, seconds
from atenet.identity.spiffe import CLI_ID, EGRESS_SERVER_NAME, pod_id
from atenet.worker.network import check_prefix
from atenet.worker.resolv_conf import resolver_address

__all__ = ["DNS_ANSWERS", "SANDBOXES", "WorkerSettings"]

SANDBOXES = ("process", "gvisor", "null")
CGROUP_ROOTS = ("root", "own")
DNS_ANSWERS = ("synthetic", "upstream")


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    name: str = flag("Name of this worker (its pod).")
    namespace: str = flag("Namespace of the worker; part of its SPIFFE id.", default="default")
    pool: str = flag("Pool of the worker.", default="local")
    service_account: str | None = flag(
        "ServiceAccount of the worker, part of its SPIFFE id. Default: its pool's name.",
        default=None,
    )
    pod_uid: str | None = flag(
        "Uid of its pod, by which a cluster's controller knows the worker from others of its name. "
        "Default: its name.",
        default=None,
    )
    listen: str = flag("Where atunnel listens for the router, host:port.", default="0.0.0.0:8443")
    ip: tuple[str, ...] = flag("Address that the router dials. Repeatable, at most two.")
    sandbox: str = flag(
        "Sandbox class of this worker: process; gvisor, which keeps memory and runs actors of the "
        "process class too; or null, in which nothing runs at all: for measures and tests of "
        "everything around it.",
        default="process",
    )
    runsc: Path | None = flag(
        "gVisor's runsc. Default: one on PATH that is recent enough, else what `make runsc` built.",
        default=None,
    )
    images: Path | None = flag(
        "Directory of this node's images (`ate image import`), for containers of the gvisor class.",
        default=None,
    )
    slots: int = flag("How many actors this worker holds at a time.", default=4)
    cpu_milli: int = flag(
        "Thousandths of a core that actors' templates may ask for in all. 0: only slots count.",
        default=0,
    )
    memory_bytes: int = flag(
        "Bytes of memory that actors' templates may ask for in all. 0: only slots count.", default=0
    )
    atelet_socket: Path = flag("Unix socket of the node agent.")
    socket: Path = flag("Unix socket to serve the node agent on.")
    credential: Path = flag("PEM with the worker's private key and certificate chain.")
    trust: Path = flag("PEM with the pod-identity authorities, which the router must chain to.")
    state_dir: Path = flag(
        "Directory for this worker's files. What gVisor's sandboxes need while they run is in memory:"
        " below /run/atenet, or /dev/shm/atenet where /run is on a disk; their root directory is here where"
        " that is mounted noexec."
    )
    net_prefix: str = flag(
        "Start of the name of every network namespace and cgroup that this worker makes. What an "
        "interrupted run left under it is removed at start, so no two workers may share it."
    )
    cgroup_root: str = flag(
        "Below which cgroup actors' are made: root, or own, the one that this worker runs in, so that a "
        "container's limits hold for its actors.",
        default="root",
    )
    network_pool: int = flag("How many actor networks are kept ready ahead of need.", default=2)
    label: tuple[str, ...] = flag("Label of the worker as KEY=VALUE. Repeatable.", default=())
    allow_host_path: tuple[Path, ...] = flag(
        "Directory that templates may mount read-only, with all below it. Repeatable.", default=()
    )
    egress_gateway_trust: Path | None = flag(
        "PEM with the service-DNS authorities, which the egress gateway must chain to. Needed where "
        "the node agent names a gateway.",
        default=None,
    )
    egress_gateway_server_name: str = flag(
        "The name that the egress gateway must prove.", default=EGRESS_SERVER_NAME
    )
    egress_interception_trust: Path | None = flag(
        "PEM with the interception authorities: actors are given them together with the public roots, "
        "in the variables that common programs read. Without it: neither.",
        default=None,
    )
    egress_public_roots: Path | None = flag(
        "PEM with the public roots for it. Default: the system's.", default=None
    )
    egress_connections: int = flag(
        "How many connections an actor may have open to the outside at a time; more are reset.",
        default=1024,
    )
    capture_port: int = flag(
        "Port, in each actor's own network, that its outgoing connections are redirected to.",
        default=15001,
    )
    dns_answers: str = flag(
        "How names that an actor's policy allows are answered: synthetic (an address that only "
        "means something in this sandbox; no query leaves) or upstream (by --dns-upstream).",
        default="synthetic",
    )
    dns_range: str = flag(
        "Block that synthetic addresses are taken from; nothing that actors dial may lie in it.",
        default="198.18.0.0/15",
    )
    dns_upstream: tuple[str, ...] = flag(
        "Resolver for --dns-answers=upstream, an address or address:port. Repeatable. "
        "Default: the name servers of /etc/resolv.conf.",
        default=(),
    )
    stats_listen: Address | None = flag(
        "Where to serve /metrics over plain HTTP, host:port. Default: nowhere.",
        default=None,
        kind=Address.parse,
    )
    policy_refresh: float = flag(
        "How often actors' egress policies are looked at again, for the DNS relays.",
        default=2.0,
        kind=seconds,
    )
    suspend_grace: float = flag(
        "How long running requests may go on when their actor is suspended.",
        default=5.0,
        kind=seconds,
    )
    stop_wait: float = flag(
        "How long an actor has between SIGTERM and SIGKILL.", default=2.0, kind=seconds
    )
    denials_listen: str | None = flag(
        "Serve the names that actors were lately denied to people, host:port; without it: not served. "
        "Shows --credential, and asks for a certificate that chains to --trust.",
        default=None,
    )
    denials_reader: tuple[str, ...] = flag(
        "SPIFFE ID that may read denials; repeatable.", default=(CLI_ID,)
    )
    ready_file: Path | None = flag(
        "File to make, with the bound addresses as JSON, once the worker is registered.",
        default=None,
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        """Raises AteError naming the flag."""
        for name in ("name", "namespace", "pool"):
            try:
                check_name(getattr(self, name))
            except ValueError as e:
                raise AteError(f"--{name} {getattr(self, name)!r}: {e}") from e
        _ = self.spiffe_id
        check_prefix(self.net_prefix)
        if not 1 <= len(self.ip) <= 2:
            raise AteError("--ip must be given once or twice", hint="give the worker's address")
        if self.sandbox not in SANDBOXES:
            known = ", ".join(SANDBOXES)
            raise AteError(f"--sandbox {self.sandbox!r} is not one of {known}")
        if self.cgroup_root not in CGROUP_ROOTS:
            known = ", ".join(CGROUP_ROOTS)
            raise AteError(f"--cgroup-root {self.cgroup_root!r} is not one of {known}")
        if not 1 <= self.slots <= 1000:
            raise AteError(f"--slots {self.slots} is not between 1 and 1000")
        if not 0 <= self.network_pool <= 100:
            raise AteError(f"--network-pool {self.network_pool} is not between 0 and 100")
        self._check_egress()
        for name in ("cpu_milli", "memory_bytes"):
            if getattr(self, name) < 0:
                raise AteError(f"--{name.replace('_', '-')} must not be below 0")
        _ = self.labels

    def _check_egress(self) -> None:
        if self.dns_answers not in DNS_ANSWERS:
            known = ", ".join(DNS_ANSWERS)
            raise AteError(f"--dns-answers {self.dns_answers!r} is not one of {known}")
        try:
            block = ipaddress.IPv4Network(self.dns_range)
        except ValueError as e:
            raise AteError(f"--dns-range: {e}", hint="give a block such as 198.18.0.0/15") from e
        if not 8 <= block.prefixlen <= 24:
            raise AteError(f"--dns-range {block} is not between /8 and /24")
        # Beyond are the ports that the kernel gives to connections of its own choice.
        if not 1024 <= self.capture_port < 32768:
            raise AteError(f"--capture-port {self.capture_port} is not between 1024 and 32767")
        if not 1 <= self.egress_connections <= 65535:
            raise AteError(f"--egress-connections {self.egress_connections} is not 1 to 65535")
        if not 0.05 <= self.policy_refresh <= 5:
            raise AteError(f"--policy-refresh {self.policy_refresh:g}s is not between 50ms and 5s")
        for text in self.dns_upstream:
            try:
                resolver_address(text)
            except ValueError as e:
                raise AteError(f"--dns-upstream {text!r}: {e}") from e

    @property
    def spiffe_id(self) -> str:
        try:
            return pod_id(self.namespace, self.service_account or self.pool)
        except AteError as e:
            raise AteError(f"--service-account: {e.message}") from e

    @property
    def capacity(self) -> dict[str, int]:
        """What is counted besides slots, by the names of WorkerResources."""
        named = {"cpu_milli": self.cpu_milli, "memory_bytes": self.memory_bytes}
        return {name: amount for name, amount in named.items() if amount}

    @property
    def labels(self) -> dict[str, str]:
        pairs = [text.partition("=") for text in self.label]
        for text, (key, equals, _) in zip(self.label, pairs, strict=True):
            if not key or not equals:
                raise AteError(f"--label {text!r} is not KEY=VALUE")
        return {key: value for key, _, value in pairs}
