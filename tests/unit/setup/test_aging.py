"""Which authorities `ate-setup status` warns of, when, and what it says to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.holding import LIFETIMES, create_authority
from atenet.setup.aging import Aging, aging
from cryptography.x509 import Certificate

MADE = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
LONG = (names.ACTOR_IDENTITY, names.INTERCEPTION)


def made(name: str, when: datetime = MADE) -> Certificate:
    return create_authority(name, when).certificate


ALL = {name: (made(name),) for name in names.ALL_AUTHORITIES}


def of(name: str, now: datetime, *certificates: Certificate) -> Aging | None:
    """What is said of one, as if the others were new."""
    young = {each: (made(each, now),) for each in names.ALL_AUTHORITIES}
    found = list(aging({**young, name: certificates or ALL[name]}, now))
    assert len(found) <= 1
    return found[0] if found else None


def test_of_new_ones_nothing_is_said() -> None:
    assert list(aging(ALL, MADE)) == []
    assert list(aging(ALL, MADE + YEAR / 2)) == []


@pytest.mark.parametrize("name", LONG)
def test_one_that_nobody_rotates_is_told_after_two_years_and_in_its_last(name: str) -> None:
    day = timedelta(days=1)
    assert of(name, MADE + 2 * YEAR - day) is None
    old = of(name, MADE + 2 * YEAR + day)
    assert old is not None
    assert old.where == f"authority {name}"
    assert old.message == "has signed since 2025-12-31, for 731 days"
    assert f"`ate-setup rotate-ca {name}`" in old.hint
    assert not old.over
    last = of(name, MADE + LIFETIMES[name] - 30 * day)
    assert last is not None
    assert last.message == "ends on 2035-12-30, in 30 days"
    assert not last.over
    gone = of(name, MADE + LIFETIMES[name] + day)
    assert gone is not None
    assert gone.message == "ended on 2035-12-30"
    assert gone.over


@pytest.mark.parametrize("name", names.SIGNED_HERE)
def test_one_that_the_controller_rotates_is_told_only_when_it_did_not(name: str) -> None:
    assert of(name, MADE + 0.74 * YEAR) is None
    late = of(name, MADE + 0.76 * YEAR)
    assert late is not None
    assert "ate-controller has not replaced it" in late.message
    assert "logs deploy/ate-controller" in late.hint
    assert not late.over
    gone = of(name, MADE + YEAR)
    assert gone is not None
    assert gone.over


@pytest.mark.parametrize("name", LONG)
def test_one_that_is_being_replaced_is_as_old_as_its_successor(name: str) -> None:
    now = MADE + 3 * YEAR
    for order in (ALL[name][0], made(name, now)), (made(name, now), ALL[name][0]):
        assert of(name, now, *order) is None


def test_one_that_is_not_there_is_told_as_what_it_is() -> None:
    (found,) = aging({name: ALL[name] for name in names.ALL_AUTHORITIES[1:]}, MADE)
    assert found.over
    assert str(found) == "authority pod-identity: its certificate is not there"
    assert "ate-setup install" in found.hint


def test_who_is_to_rotate_what_actors_trust_is_told_what_it_costs_them() -> None:
    found = of(names.INTERCEPTION, MADE + 3 * YEAR)
    assert found is not None
    assert "started anew" in found.hint
