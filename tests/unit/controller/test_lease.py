"""Who leads: of a lease, what a replica makes of it at a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from atenet.controller.lease import DURATION, LeaseView, Observation, Step, renewed, step, taken

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lease(holder: str, version: str = "1") -> LeaseView:
    return LeaseView(holder, version, transitions=4)


def test_where_there_is_none_it_is_taken() -> None:
    assert step(None, "me", None, 0.0) == (Step.TAKE, None)


def test_one_s_own_is_renewed_and_a_released_one_taken() -> None:
    assert step(lease("me"), "me", None, 0.0)[0] is Step.RENEW
    assert step(lease(""), "me", None, 0.0)[0] is Step.TAKE


def test_another_s_is_taken_only_when_it_was_seen_unchanged_for_its_whole_time() -> None:
    what, seen = step(lease("other"), "me", None, 100.0)
    assert (what, seen) == (Step.WAIT, Observation("1", 100.0))
    what, seen = step(lease("other"), "me", seen, 100.0 + DURATION - 0.1)
    assert what is Step.WAIT
    assert step(lease("other"), "me", seen, 100.0 + DURATION)[0] is Step.TAKE


def test_a_renewal_begins_that_time_anew() -> None:
    _, seen = step(lease("other"), "me", None, 100.0)
    what, seen = step(lease("other", "2"), "me", seen, 114.0)
    assert (what, seen) == (Step.WAIT, Observation("2", 114.0))


@pytest.mark.parametrize("before", [None, lease("other")])
def test_only_a_new_holder_counts_as_a_transition(before: LeaseView | None) -> None:
    first = taken(before, "me", _NOW)
    assert first.transitions == (0 if before is None else 5)
    assert first.acquired == _NOW
    again = renewed(lease("me"), "me", _NOW)
    assert (again.transitions, again.acquired) == (4, None)
