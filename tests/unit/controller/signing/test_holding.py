from __future__ import annotations

from datetime import timedelta

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.holding import Holding, create_authority, fingerprint
from atenet.errors import AteError

from tests.unit.controller.signing.asking import NOW

NAME = names.POD_IDENTITY


def reread(holding: Holding) -> Holding:
    """As if another process went on."""
    return Holding.parse(holding.name, holding.data(), holding.notes(), NOW)


def test_every_stage_of_a_rotation_is_read_back_as_it_was_written() -> None:
    rest = Holding(NAME, create_authority(NAME, NOW))
    prepared = reread(rest.prepared(NOW))
    assert prepared.following is not None
    trusted = reread(prepared.trusted(NOW))
    assert trusted.trusted_since == NOW
    switched = reread(trusted.switched(NOW))
    assert switched.current.certificate == prepared.following.certificate
    assert switched.retiring == fingerprint(rest.current.certificate)
    assert (switched.following, switched.trusted_since) == (None, None)
    rested = reread(switched.rested())
    assert rested.data() == {"current.pem": prepared.data()["next.pem"]}
    assert rested.notes() == {}


def test_the_old_key_is_gone_when_the_new_one_signs() -> None:
    rest = Holding(NAME, create_authority(NAME, NOW))
    switched = rest.prepared(NOW).switched(NOW)
    assert rest.data()["current.pem"] not in switched.data().values()


def test_nothing_shows_a_key() -> None:
    holding = Holding(NAME, create_authority(NAME, NOW)).prepared(NOW)
    assert "PRIVATE" not in repr(holding) + str(holding) + str(holding.notes())


def test_an_empty_secret_is_named() -> None:
    with pytest.raises(AteError, match=r"ate-authority-pod-identity has no current\.pem"):
        Holding.parse(NAME, {}, {}, NOW)


def test_a_damaged_secret_is_named_and_not_shown() -> None:
    data = {"current.pem": "bm90IGEga2V5"}
    with pytest.raises(
        AteError, match=r"ate-authority-pod-identity/current\.pem is damaged"
    ) as told:
        Holding.parse(NAME, data, {}, NOW)
    assert "not a key" not in str(told.value)


def test_an_expired_authority_is_refused() -> None:
    old = Holding(NAME, create_authority(NAME, NOW - timedelta(days=400)))
    with pytest.raises(AteError, match="expired"):
        Holding.parse(NAME, old.data(), {}, NOW)
