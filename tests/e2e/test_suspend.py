"""Putting an actor to sleep right after it was used, and using it right after it was put to sleep."""

import time
from collections.abc import Iterator

import pytest

from tests.support.local_system import Ate, ate_home

pytestmark = pytest.mark.timeout(300)
GRACE = 60


@pytest.fixture(scope="module")
def patient(root: None) -> Iterator[Ate]:
    """A system whose running requests have a minute when their actor is suspended."""
    with ate_home() as ate:
        up = ate.up("--workers", "1", "--suspend-grace", f"{GRACE}s")
        assert up.code == 0, up
        ate.furnish("one")
        yield ate
        ate.good("down")
        assert ate.left_behind() == []


@pytest.mark.conformance("T-05")
def test_a_connection_that_the_router_only_keeps_does_not_hold_a_suspend_up(patient: Ate) -> None:
    """The grace is for requests that run."""
    patient.count()
    began = time.monotonic()
    patient.good("actor", "suspend", "demo/one")
    assert time.monotonic() - began < GRACE / 2
    assert patient.state() == "SUSPENDED"


@pytest.mark.conformance("I-13")
def test_suspend_and_request_without_a_pause_again_and_again(patient: Ate) -> None:
    count = patient.count(add=True)
    for _ in range(8):
        patient.good("actor", "suspend", "demo/one")
        assert patient.count() == count
