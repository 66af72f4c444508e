"""What a memory image depends on: the runtime that wrote it, and the files that it is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from atenet.gvisor.runtime import Runtime

__all__ = ["MemoryNeeds", "host_root", "image_root", "version_in"]

_HOST, _IMAGE = "host:", "image:"


@dataclass(frozen=True)
class MemoryNeeds:
    """`roots`: by container, what its root file system was: see `host_root` and `image_root`."""

    runtime: Runtime
    roots: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"runtime": self.runtime.as_json(), "roots": dict(self.roots)}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> MemoryNeeds:
        """Raises TypeError, KeyError or ValueError for anything else."""
        return cls(Runtime.from_json(given["runtime"]), checked_roots(given["roots"]))


def checked_roots(given: Any) -> dict[str, str]:
    """Raises TypeError."""
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
        raise TypeError("roots must be texts by container")
    return given


def host_root(fingerprint: str) -> str:
    """The root of a container without an image: the host's programs."""
    return f"{_HOST}{fingerprint}"


def image_root(name: str, version: str) -> str:
    """The root of a container with one."""
    return f"{_IMAGE}{name}@{version}"


def version_in(root: str) -> str | None:
    """The image version that such a text names; None when it names none."""
    return root.rpartition("@")[2] if root.startswith(_IMAGE) else None
