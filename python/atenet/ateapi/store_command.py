"""What commands that work on the store have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from atenet import daemon
from atenet.ateapi.settings import StoreSettings
from atenet.ateapi.store import Store
from atenet.ateapi.store.opening import open_store

__all__ = ["with_store"]


def with_store(settings: StoreSettings, work: Callable[[Store], Awaitable[None]]) -> None:
    """Opens the store, works, closes it. An AteError ends the process with exit code 1."""

    async def once(_stop: daemon.Stop) -> None:
        store = await open_store(settings.store_location)
        try:
            await work(store)
        finally:
            await store.close()

    daemon.run("ateapi", settings.log_level, once)
