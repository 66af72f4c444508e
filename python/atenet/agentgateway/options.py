"""What is not the file's to say."""

from __future__ import annotations

from dataclasses import dataclass, field

from atenet.agentgateway.limits import Limits

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """`bind_address`: an IP; listeners get it where the file names only a port."""

    bind_address: str
    access_log: bool = True
    limits: Limits = field(default_factory=Limits)
