"""Stores of either engine for tests, and records to put into them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from atenet.ateapi import records
from atenet.ateapi.store import Store
from atenet.ateapi.store.location import store_location
from atenet.ateapi.store.opening import migrate_store, open_store
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import actor


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """The store at that place, migrated."""
    await migrate_store(store_location(url))
    made = await open_store(store_location(url))
    try:
        yield made
    finally:
        await made.close()


def new_worker(name: str = "w", slots: int = 2, epoch: int = 1) -> pb.Worker:
    made = pb.Worker(metadata=pb.ResourceMetadata(name=name), epoch=epoch)
    made.status.capacity.actors = slots
    made.status.state = pb.WORKER_STATE_ACTIVE
    return made


def new_actor(name: str, state: pb.ActorState = pb.ACTOR_STATE_SUSPENDED) -> pb.Actor:
    made = actor(name)
    records.created(made.metadata, 1.0)
    made.status.state = state
    return made
