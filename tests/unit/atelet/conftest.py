import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.node import Node, node


@pytest.fixture
async def alone(root: None, tmp_path: Path) -> AsyncIterator[Node]:
    """A node agent without workers."""
    async with node(tmp_path) as made:
        yield made


@pytest.fixture
async def staffed(alone: Node) -> Node:
    """With two workers."""
    await asyncio.gather(alone.start_worker("worker-1"), alone.start_worker("worker-2"))
    return alone
