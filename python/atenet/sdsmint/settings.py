"""What `atenet sdsmint` can be told: each flag, its default and its why. Durations are seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.address import Address
from atenet.errors import AteError
from atenet.flags import flag, seconds

__all__ = ["SdsmintSettings"]

# A secret is given up so long before its leaf ends: who is shown it at the last moment still has time for a handshake.
TTL_MARGIN = 60.0


@dataclass(frozen=True, kw_only=True)
class SdsmintSettings:
    """One minter beside one Envoy."""

    uds_path: Path = flag("The Unix socket on which Envoy asks for leaves.")
    uds_gid: int | None = flag(
        "A group that may use the socket as well (mode 0660); without it: this account alone (0600).",
        default=None,
    )
    ca_pool_path: tuple[Path, ...] = flag(
        "PEM with the interception authorities' keys and certificates; the first that is valid mints. "
        "Repeatable; read again when it changes."
    )
    leaf_cert_ttl: float = flag(
        "How long a leaf is valid from now on; Envoy asks again before.",
        default=900.0,
        kind=seconds,
    )
    max_names: int = flag(
        "Names with a leaf at a time; for one more, the oldest one is taken back.", default=10_000
    )
    metrics_listen_addr: Address | None = flag(
        "/metrics and /readyz; without it: none.", default=None, kind=Address.parse
    )
    ready_file: Path | None = flag(
        "Written once serving: JSON with the socket's path.", default=None
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        if not 2 * TTL_MARGIN <= self.leaf_cert_ttl <= 7 * 86400:
            raise AteError(
                f"--leaf-cert-ttl must be from 2m to 7d, not {self.leaf_cert_ttl:g}s",
                hint="strict clients refuse long-lived leaves, and short ones are minted all the time",
            )
        if self.max_names < 1:
            raise AteError("--max-names must be 1 or more")

    @property
    def secret_ttl(self) -> float:
        """How long Envoy may use a secret."""
        return self.leaf_cert_ttl - TTL_MARGIN
