from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from atenet.controller.signing.rotation import Action, Pace, Stage, Step, View, step
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.controller.signing.asking import NOW

MINUTE = timedelta(minutes=1)
PACE = Pace(propagation=3 * MINUTE, leaf=12 * MINUTE)

REST = View("old", None, ("old",), True, None, None, None)
SPREADING = View("old", "new", ("old", "new"), True, NOW, None, None)
RENEWING = View("new", None, ("old", "new"), True, None, NOW, "old")


def at(view: View, minutes: float, *, begin: bool = False) -> Step:
    return step(view, NOW + minutes * MINUTE, PACE, begin=begin)


def test_an_authority_at_rest_stays_there_until_somebody_begins() -> None:
    assert at(REST, 0) == Step(Stage.REST, Action.NONE)
    assert at(REST, 0, begin=True) == Step(Stage.REST, Action.PREPARE)


def test_the_successor_is_published_before_anything_is_waited_for() -> None:
    fresh = replace(SPREADING, bundle=("old",), trusted_since=None)
    assert at(fresh, 0).action is Action.PUBLISH


def test_it_is_noted_when_every_namespace_has_it_and_not_before() -> None:
    unseen = replace(SPREADING, spread=False, trusted_since=None)
    assert at(unseen, 0).action is Action.NONE
    assert "namespace" in at(unseen, 0).waiting_for
    assert at(replace(unseen, spread=True), 0).action is Action.NOTE


def test_it_signs_when_every_process_has_read_the_bundle() -> None:
    waiting = at(SPREADING, 2.9)
    assert (waiting.action, waiting.until) == (Action.NONE, NOW + 3 * MINUTE)
    assert at(SPREADING, 3).action is Action.SWITCH


def test_a_namespace_that_lost_its_copy_holds_up_the_switch() -> None:
    assert at(replace(SPREADING, spread=False), 30).action is Action.NONE


def test_the_old_one_goes_when_its_last_leaf_is_over() -> None:
    assert at(RENEWING, 17.9).until == NOW + 18 * MINUTE
    assert at(RENEWING, 18).action is Action.RETIRE


def test_it_goes_sooner_where_all_leaves_are_known_to_be_renewed() -> None:
    assert at(replace(RENEWING, stale=1), 6).action is Action.NONE
    assert at(replace(RENEWING, stale=0), 5.9).action is Action.NONE
    assert at(replace(RENEWING, stale=0), 6).action is Action.RETIRE


@pytest.mark.parametrize("view", [SPREADING, RENEWING])
def test_no_second_rotation_begins_during_the_first(view: View) -> None:
    assert at(view, 0, begin=True).action is not Action.PREPARE


@pytest.mark.parametrize("view", [REST, RENEWING])
def test_a_bundle_without_the_signer_is_mended_first(view: View) -> None:
    broken = replace(view, bundle=("foreign",))
    assert at(broken, 30, begin=True).action is Action.PUBLISH


def test_retiring_is_finished_where_the_bundle_is_done_and_the_note_is_not() -> None:
    assert at(replace(RENEWING, bundle=("new",)), 18).action is Action.RETIRE


class Cluster:
    """Minutes of a cluster in which a rotation goes on: what every process may hold at each of them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.view = replace(REST, current=0, bundle=(0,))
        self.minute, self.made = 0, 0
        self.copies: list[frozenset[object]] = []  # by minute: what a namespace's map says
        self.signers: list[object] = []  # by minute: who signs, in the Secret
        self._copy = frozenset(self.view.bundle)
        self.rotations = 0

    def run(self, minutes: int) -> None:
        for self.minute in range(minutes):
            if self._chance.random() < 0.3:  # the one that distributes looks
                self._copy = frozenset(self.view.bundle)
            if self._chance.random() < 0.5:  # somebody looks, ate-controller or ate-setup
                self._advance()
            self.copies.append(self._copy)
            self.signers.append(self.view.current)

    def _advance(self) -> None:
        view = replace(self.view, spread=self._copy == frozenset(self.view.bundle))
        now = NOW + self.minute * MINUTE
        action = step(view, now, PACE, begin=self._chance.random() < 0.5).action
        if action is Action.PREPARE:
            self.made += 1
            view = replace(view, following=self.made, trusted_since=None)
        elif action is Action.PUBLISH:
            assert view.following is not None
            view = replace(view, bundle=(view.following, *view.bundle))
        elif action is Action.NOTE:
            view = replace(view, trusted_since=now)
        elif action is Action.SWITCH:
            view = replace(
                view,
                current=view.following,
                following=None,
                switched_at=now,
                trusted_since=None,
                retiring=view.current,
            )
        elif action is Action.RETIRE:
            left = tuple(each for each in view.bundle if each != view.retiring)
            view = replace(view, bundle=left, retiring=None, switched_at=None)
            self.rotations += 1
        self.view = view

    def check(self) -> None:
        """Nobody shows a leaf to anybody who may not yet, or no longer, know its signer."""
        lag, life = 3, 12
        for now in range(len(self.copies)):
            bundles = self.copies[max(0, now - lag) : now + 1]
            signed = range(max(0, now - life), now + 1)
            signers = {self.signers[t] for s in signed for t in range(max(0, s - lag), s + 1)}
            for bundle in bundles:
                assert signers <= bundle, f"minute {now}: {signers} signed, {set(bundle)} trusted"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_no_handshake_fails_at_any_time_of_any_rotation(seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    cluster.run(120)
    cluster.check()


def test_a_cluster_that_is_looked_at_rotates_to_the_end() -> None:
    class Always(random.Random):
        def random(self) -> float:
            return 0.0

    cluster = Cluster(Always())
    cluster.run(60)
    cluster.check()
    assert cluster.rotations >= 2
