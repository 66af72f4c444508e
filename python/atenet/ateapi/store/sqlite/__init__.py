"""The embedded store."""

from atenet.ateapi.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
