"""Where snapshots are kept: one interface, on a file system or in an object store."""

from atenet.snapshots.interface import ObjectStore, StoredObject
from atenet.snapshots.opening import open_objects
from atenet.snapshots.uris import SnapshotUris

__all__ = ["ObjectStore", "SnapshotUris", "StoredObject", "open_objects"]
