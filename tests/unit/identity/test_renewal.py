from __future__ import annotations

from datetime import UTC, datetime, timedelta

from atenet.identity.renewal import AuthorityStep, authority_step, leaf_due, lived
from hypothesis import given
from hypothesis import strategies as st

_START = datetime(2026, 1, 1, tzinfo=UTC)
_END = _START + timedelta(hours=24)


def _at(hours: float) -> datetime:
    return _START + timedelta(hours=hours)


def test_a_leaf_is_renewed_at_two_thirds_of_its_life() -> None:
    assert not leaf_due(_START, _END, _at(15.9))
    assert leaf_due(_START, _END, _at(16))
    assert leaf_due(_START, _END, _at(30))


def test_a_leaf_of_the_future_is_renewed() -> None:
    assert leaf_due(_START, _END, _at(-1))


def test_a_life_of_nothing_is_over() -> None:
    assert lived(_START, _START, _START) == 1.0
    assert leaf_due(_END, _START, _at(1))


def test_an_authority_s_successor_is_trusted_before_it_issues() -> None:
    step = authority_step
    assert step(_START, _END, _at(11), has_successor=False) is AuthorityStep.NONE
    assert step(_START, _END, _at(12), has_successor=False) is AuthorityStep.PREPARE
    assert step(_START, _END, _at(15), has_successor=True) is AuthorityStep.NONE
    assert step(_START, _END, _at(16), has_successor=True) is AuthorityStep.SWITCH


@given(st.floats(min_value=-100, max_value=100))
def test_it_never_switches_to_a_successor_that_is_not_there(hours: float) -> None:
    step = authority_step(_START, _END, _at(hours), has_successor=False)
    assert step is not AuthorityStep.SWITCH
