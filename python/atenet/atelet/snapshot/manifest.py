"""A snapshot's manifest: written last, so its presence is what makes a snapshot one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from atenet.errors import AteError

__all__ = ["FILE_NAME", "Manifest", "SnapshotDamagedError", "SnapshotMissingError", "VolumeEntry"]

FILE_NAME = "manifest.json"
_FORMAT = "atenet-snapshot/1"


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


@dataclass(frozen=True)
class Manifest:
    atespace: str
    actor: str
    actor_uid: str
    content_scope: str
    created: str  # RFC 3339
    found_stopped: bool
    volumes: tuple[VolumeEntry, ...]

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
            return cls(**fields, volumes=volumes)
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise SnapshotDamagedError(f"{where} is damaged: {e}") from e
