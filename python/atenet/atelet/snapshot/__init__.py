"""Snapshots: an actor's durable directories and, with FULL, its memory, stored whole or not at all."""

from atenet.atelet.snapshot.archive import TooDeepError, check_depth
from atenet.atelet.snapshot.manifest import (
    Manifest,
    MemoryEntry,
    SnapshotDamagedError,
    SnapshotMissingError,
)
from atenet.atelet.snapshot.store import SnapshotStore

__all__ = [
    "Manifest",
    "MemoryEntry",
    "SnapshotDamagedError",
    "SnapshotMissingError",
    "SnapshotStore",
    "TooDeepError",
    "check_depth",
]
