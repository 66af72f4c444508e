"""Where recent denials can be asked for, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.errors import AteError
from atenet.flags import flag
from atenet.identity.spiffe import CLI_ID

__all__ = ["DenialsSettings"]


@dataclass(frozen=True)
class DenialsSettings:
    """Not served unless an address is given."""

    denials_listen: str | None = flag(
        "Serve recent egress denials to people, host:port; without it: not served.", default=None
    )
    denials_credential: Path | None = flag(
        "PEM with the key and chain that --denials-listen shows.", default=None
    )
    denials_trust: Path | None = flag(
        "PEM with the pod-identity authorities, which readers of denials must chain to.",
        default=None,
    )
    denials_reader: tuple[str, ...] = flag(
        "SPIFFE ID that may read denials; repeatable.", default=(CLI_ID,)
    )

    def denials_files(self) -> tuple[str, Path, Path] | None:
        """Address, credential and trust; None: not served. Raises AteError naming the flag that is missing."""
        if self.denials_listen is None:
            return None
        for flag_name, given in (
            ("--denials-credential", self.denials_credential),
            ("--denials-trust", self.denials_trust),
        ):
            if given is None:
                raise AteError(f"{flag_name} is missing", hint="--denials-listen needs it")
        assert self.denials_credential is not None  # looked at just now
        assert self.denials_trust is not None
        return self.denials_listen, self.denials_credential, self.denials_trust
