from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from atenet.worker.network import clear_leftovers, netns

from tests.support.actor_box import ActorBox, actor_box, new_prefix


@pytest.fixture
def prefix(root: None) -> Iterator[str]:
    """Whatever is made under it is gone after the test, and must be gone before."""
    own = new_prefix()
    yield own
    left = netns.names(own)
    clear_leftovers(own)
    assert left == []


@pytest.fixture
async def box(root: None, tmp_path: Path) -> AsyncIterator[ActorBox]:
    async with actor_box(tmp_path) as made:
        yield made
