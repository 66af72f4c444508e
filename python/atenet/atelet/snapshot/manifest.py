"""A snapshot's manifest: written last, so its presence is what makes a snapshot one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from atenet._engine import check_name
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds, Runtime
from atenet.gvisor.needs import checked_roots

__all__ = [
    "FILE_NAME",
    "MEMORY_FILE",
    "Manifest",
    "MemoryEntry",
    "SnapshotDamagedError",
    "SnapshotMissingError",
    "VolumeEntry",
    "archive_name",
]

FILE_NAME = "manifest.json"
_FORMAT = "atenet-snapshot/1"
# No volume can have this name.
MEMORY_FILE = "_memory.tar.zst"


def archive_name(volume: str) -> str:
    """The file of a volume's archive, beside the manifest."""
    return f"{volume}.tar.zst"


class SnapshotMissingError(AteError):
    """There is no committed snapshot of this name."""


class SnapshotDamagedError(AteError):
    """What is stored is not what was written; the message names the file."""


@dataclass(frozen=True)
class VolumeEntry:
    """One durable directory. `file`: its archive, beside the manifest; `size`: of that, bytes."""

    name: str
    file: str
    sha256: str
    size: int

    def check(self) -> None:
        """Both names become paths. Raises ValueError."""
        check_name(self.name)
        if self.file != archive_name(self.name):
            raise ValueError(f"archive of volume {self.name!r} has the name {self.file!r}")


@dataclass(frozen=True)
class MemoryEntry:
    """The memory image: an archive beside the manifest, and what it depends on."""

    file: str
    sha256: str
    size: int
    runtime: Runtime
    roots: dict[str, str] = field(default_factory=dict)  # by container

    @property
    def needs(self) -> MemoryNeeds:
        return MemoryNeeds(self.runtime, self.roots)

    @classmethod
    def decode(cls, given: dict[str, Any]) -> MemoryEntry:
        """Raises ValueError, TypeError or KeyError."""
        entry = cls(**{**given, "runtime": Runtime.from_json(given["runtime"])})
        checked_roots(entry.roots)
        if entry.file != MEMORY_FILE:
            raise ValueError(f"the archive of the memory has the name {entry.file!r}")
        return entry


@dataclass(frozen=True)
class Manifest:
    atespace: str
    actor: str
    actor_uid: str
    content_scope: str
    created: str  # RFC 3339
    found_stopped: bool
    volumes: tuple[VolumeEntry, ...]
    template_uid: str = ""
    memory: MemoryEntry | None = None
    memory_lost: bool = False  # it was to be there, and went with its worker

    def encode(self) -> bytes:
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes, where: str) -> Manifest:
        """Raises SnapshotDamagedError naming `where`."""
        try:
            fields: dict[str, Any] = json.loads(content)
            if fields.pop("format") != _FORMAT:
                raise ValueError("unknown format")
            volumes = tuple(VolumeEntry(**volume) for volume in fields.pop("volumes"))
            for volume in volumes:
                volume.check()
            given = fields.pop("memory", None)
            memory = None if given is None else MemoryEntry.decode(given)
            return cls(**fields, volumes=volumes, memory=memory)
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise SnapshotDamagedError(f"{where} is damaged: {e}") from e
