"""What a node agent is started with: every flag, its default and its meaning, named once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.address import Address
from atenet.atelet import golden, local
from atenet.errors import AteError
from atenet.flags import flag, seconds
from atenet.identity.spiffe import API_SERVER_NAME, check_node
from atenet.snapshots.opening import SNAPSHOTS_HELP

__all__ = ["AteletSettings"]


@dataclass(frozen=True, kw_only=True)
class AteletSettings:
    node: str = flag("Name of this node.")
    listen: str = flag("Where to serve the control plane, host:port.", default="0.0.0.0:7444")
    advertise: str | None = flag(
        "Where the control plane reaches this agent, host:port. Default: what --listen bound.",
        default=None,
    )
    credential: Path = flag("PEM with this agent's private key and certificate chain.")
    trust: Path = flag("PEM with the pod-identity authorities, which callers must chain to.")
    api: str = flag("Where the control plane is, host:port.")
    api_roots: Path = flag("PEM with the service-DNS authorities, which it must chain to.")
    api_server_name: str = flag("The name it must prove.", default=API_SERVER_NAME)
    state_dir: Path = flag(
        "Directory for this node's files: actors' durable directories and logs are below it."
    )
    snapshots: str = flag(SNAPSHOTS_HELP)
    socket: Path = flag("Unix socket to serve this node's workers on.")
    egress_gateway_address: str | None = flag(
        "Where the egress gateway is, host:port: workers are told with each start. Without it, "
        "whatever an actor dials is refused.",
        default=None,
    )
    images: Path | None = flag(
        "Directory of this node's images, as its workers are given it: versions that nothing names any "
        "more are removed from it.",
        default=None,
    )
    golden_bytes: int = flag(
        "How much disk golden images may take; the least lately used make room.",
        default=golden.DEFAULT_LIMIT_BYTES,
    )
    paused_bytes: int = flag(
        "How much disk the memory of paused actors may take; beyond it a pause is refused.",
        default=local.DEFAULT_LIMIT_BYTES,
    )
    worker_timeout: float = flag(
        "How long a worker may be silent before its actors are ended over its head.",
        default=6.0,
        kind=seconds,
    )
    ready_file: Path | None = flag(
        "File to make, with the bound addresses as JSON, once it serves.", default=None
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        """Raises AteError naming the flag."""
        try:
            check_node(self.node)
        except AteError as e:
            raise AteError(f"--node {self.node!r}: {e.message}", hint=e.hint) from e
        if self.egress_gateway_address is not None:
            _check_gateway(self.egress_gateway_address)


def _check_gateway(address: str) -> None:
    try:
        parsed = Address.parse(address)
    except ValueError as e:
        raise AteError(f"--egress-gateway-address: {e}") from e
    if address.startswith(":") or parsed.port == 0:
        raise AteError(f"--egress-gateway-address {address!r} needs a host and a port above 0")
