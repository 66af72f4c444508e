"""What `atenet agentgateway` can be told beside its file: each flag, its default and its why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.agentgateway.limits import Limits
from atenet.denials.settings import DenialsSettings
from atenet.flags import flag

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings(Limits, DenialsSettings):
    """One native router process."""

    bind_address: str | None = flag(
        "IP to listen on where the file names only a port; without it: every address.", default=None
    )
    access_log: bool = flag("Write one JSON line a request on stderr.", default=True)
    ready_file: Path | None = flag(
        "Written once serving: JSON of the bound addresses.", default=None
    )
    log_level: str | None = flag(
        "debug, info, warning or error; without it: the file's config.logging.level, else info.",
        default=None,
    )
