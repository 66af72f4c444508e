"""The store for several control planes at once."""

from atenet.ateapi.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
