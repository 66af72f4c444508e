"""Systems for end-to-end tests, each started as a person starts one."""

from collections.abc import Iterator

import pytest

from tests.support.local_system import Ate, ate_home


@pytest.fixture
def ate(root: None) -> Iterator[Ate]:
    """A state directory of its own, nothing running."""
    with ate_home() as ate:
        yield ate


@pytest.fixture(scope="module")
def running(root: None) -> Iterator[Ate]:
    """A running system that a whole module shares: two workers with two slots."""
    with ate_home() as ate:
        up = ate.up("--workers", "2", "--slots", "2")
        assert up.code == 0, up
        ate.furnish("one", "two")
        yield ate
        down = ate("down")
        assert (down.code, down.out) == (0, "down\n"), down
        assert ate.left_behind() == []
