"""A running control plane with a scripted node agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from atenet.ateapi.store.location import store_location
from atenet.ateapi.store.opening import migrate_store

from tests.support.control_plane import ControlPlane, control_plane


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with control_plane(tmp_path) as made, made.in_process():
        yield made


@pytest.fixture
async def plane_that_waits_briefly(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """Actors in use leave draining workers after a tenth of a second."""
    async with control_plane(tmp_path) as made, made.in_process(drain_wait=0.1):
        yield made


@pytest.fixture
async def plane_placing(tmp_path: Path, placement: str) -> AsyncIterator[ControlPlane]:
    async with control_plane(tmp_path) as made, made.in_process(placement=placement):
        yield made


@pytest.fixture
async def plane_on_either_store(tmp_path: Path, store_url: str) -> AsyncIterator[ControlPlane]:
    """One on SQLite, and one on PostgreSQL."""
    await migrate_store(store_location(store_url))
    async with control_plane(tmp_path) as made:
        made.store = store_url
        async with made.in_process():
            yield made
