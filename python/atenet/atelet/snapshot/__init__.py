"""DATA snapshots: an actor's durable directories, stored whole or not at all."""

from atenet.atelet.snapshot.manifest import Manifest, SnapshotDamagedError, SnapshotMissingError
from atenet.atelet.snapshot.store import SnapshotStore

__all__ = ["Manifest", "SnapshotDamagedError", "SnapshotMissingError", "SnapshotStore"]
