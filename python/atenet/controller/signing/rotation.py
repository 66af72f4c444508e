"""The stages of an authority's rotation. Pure: what is there and the time, in; the next step, out.

```
rest ─ PREPARE ─▶ next beside current ─ PUBLISH ─▶ next in the bundle ─ NOTE ─▶ in every namespace's
     ─ (until every process has read it) ─ SWITCH ─▶ next signs ─ (until what the old one signed is
     renewed) ─ RETIRE ─▶ rest
```

Each step is one write, and what it leaves behind tells the next: a rotation that was cut short
goes on wherever it is looked at again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from atenet.controller.signing import names

__all__ = ["PACES", "Action", "Pace", "Stage", "Step", "View", "step", "wanted_bundle"]


class Stage(Enum):
    """Where a rotation is."""

    REST = "rest"
    SPREADING = "spreading"  # the successor is being made known
    RENEWING = "renewing"  # the successor signs; what the old one signed still lives


class Action(Enum):
    """One write."""

    NONE = "none"
    PREPARE = "prepare"  # make the successor
    PUBLISH = "publish"  # bring the bundle up to what must be trusted
    NOTE = "note"  # remember since when it is in every namespace
    SWITCH = "switch"  # the successor signs from now on
    RETIRE = "retire"  # drop the old one from the bundle


@dataclass(frozen=True)
class Pace:
    """How long things take at most."""

    # From a ConfigMap's or Secret's change to the last process that has read it: the kubelet looks
    # about once a minute, and at what its cache gives it.
    propagation: timedelta
    # What the longest-lived leaf lives.
    leaf: timedelta


@dataclass(frozen=True)
class View:
    """An authority as it is now. Certificates are compared, never looked into."""

    current: Hashable
    following: Hashable | None  # the successor
    bundle: tuple[Hashable, ...]
    spread: bool  # every namespace has a copy of this very bundle
    trusted_since: datetime | None
    switched_at: datetime | None
    retiring: Hashable | None  # whom `current` followed, and who is still in the bundle
    stale: int | None = None  # leaves in use that `current` did not sign; None: not to be known


@dataclass(frozen=True)
class Step:
    """What to do now, or until when to wait for what."""

    stage: Stage
    action: Action
    waiting_for: str = ""
    until: datetime | None = None


_DAY = timedelta(hours=24)
_FILES = timedelta(minutes=3)
PACES = {
    names.POD_IDENTITY: Pace(_FILES, _DAY),
    names.SERVICE_DNS: Pace(_FILES, _DAY),
    # Tunnels' certificates live an hour, an actor's own the same.
    names.ACTOR_IDENTITY: Pace(_FILES, timedelta(hours=1)),
    # Programs read whom they trust when they start: one that runs on learns of nobody new. The
    # leaves themselves are minutes old, and taken back when another authority mints.
    names.INTERCEPTION: Pace(_DAY, timedelta(minutes=15)),
}


def step(view: View, now: datetime, pace: Pace, *, begin: bool) -> Step:
    """`begin`: from rest, start a rotation."""
    if view.following is not None:
        return _spread(view, now, pace)
    if view.retiring is not None:
        return _renew(view, now, pace)
    if set(wanted_bundle(view)) - set(view.bundle):
        return Step(Stage.REST, Action.PUBLISH)
    return Step(Stage.REST, Action.PREPARE if begin else Action.NONE)


def wanted_bundle(view: View) -> tuple[Hashable, ...]:
    """Whoever signs or is to sign, and whoever is there: signers of what still lives among them."""
    wanted = [view.current, view.following, *view.bundle]
    return tuple(dict.fromkeys(each for each in wanted if each is not None))


def _spread(view: View, now: datetime, pace: Pace) -> Step:
    stage = Stage.SPREADING
    if set(wanted_bundle(view)) - set(view.bundle):
        return Step(stage, Action.PUBLISH)
    if not view.spread:
        return Step(stage, Action.NONE, "every namespace to have the new bundle")
    if view.trusted_since is None:
        return Step(stage, Action.NOTE)
    until = view.trusted_since + pace.propagation
    if now < until:
        return Step(stage, Action.NONE, "every process to have read the new bundle", until)
    return Step(stage, Action.SWITCH)


def _renew(view: View, now: datetime, pace: Pace) -> Step:
    stage = Stage.RENEWING
    if set(wanted_bundle(view)) - set(view.bundle):
        return Step(stage, Action.PUBLISH)
    switched = view.switched_at or now
    # Whoever signs reads its new key a propagation later, and the leaf that it signs with the old
    # one until then reaches its process another one later.
    settled = switched + 2 * pace.propagation
    until = settled + (timedelta() if view.stale == 0 else pace.leaf)
    if now < until:
        return Step(stage, Action.NONE, "what the old authority signed to be renewed", until)
    return Step(stage, Action.RETIRE)
