"""Opens and migrates whichever store a location names; each engine is loaded when it is used."""

from __future__ import annotations

import asyncio
from pathlib import Path

from atenet.ateapi.store.interface import Store
from atenet.ateapi.store.location import StoreLocation

__all__ = ["migrate_store", "open_store"]


async def open_store(location: StoreLocation, lease_seconds: float = 2.0) -> Store:
    """`lease_seconds`: how long a control plane that dies keeps its operations from others.

    Raises AteError when it cannot be used: missing, damaged, not migrated, too new."""
    if isinstance(location, Path):
        from atenet.ateapi.store.sqlite import SqliteStore

        return await SqliteStore.open(location)
    from atenet.ateapi.store.postgres import PostgresStore

    return await PostgresStore.open(location, lease_seconds)


async def migrate_store(location: StoreLocation) -> tuple[int, int]:
    """Brings the schema up to date: its version before and after. Raises AteError."""
    if isinstance(location, Path):
        from atenet.ateapi.store.sqlite.database import prepare

        return await asyncio.to_thread(prepare, location)
    from atenet.ateapi.store.postgres.schema import migrate

    return await asyncio.to_thread(migrate, location)
