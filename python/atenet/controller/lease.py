"""Who leads: what a replica does with the Lease that it reads. Pure: the clock is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

__all__ = [
    "DURATION",
    "RENEW_DEADLINE",
    "RETRY",
    "Holding",
    "LeaseView",
    "Observation",
    "Step",
    "step",
]

# A holder that is not heard of for DURATION is replaced; it has itself given up RENEW_DEADLINE after its
# last renewal. Between the two lies what its last writes may take.
DURATION = 15.0
RENEW_DEADLINE = 10.0
RETRY = 2.0


@dataclass(frozen=True)
class LeaseView:
    """The Lease as it was read. `holder` empty: nobody's."""

    holder: str
    version: str
    duration: float = DURATION
    transitions: int = 0


@dataclass(frozen=True)
class Observation:
    """A version of the Lease, and when (of this machine's steady clock) it was first seen: clocks of
    different machines are never compared."""

    version: str
    since: float


class Step(Enum):
    RENEW = "renew"
    TAKE = "take"
    WAIT = "wait"


@dataclass(frozen=True)
class Holding:
    """What the Lease is to say."""

    holder: str
    renewed: datetime
    acquired: datetime | None
    transitions: int


def step(
    lease: LeaseView | None, me: str, seen: Observation | None, now: float
) -> tuple[Step, Observation | None]:
    """What to do next, and what to remember of the Lease until then. None: there is no Lease."""
    if lease is None:
        return Step.TAKE, None
    if seen is None or seen.version != lease.version:
        seen = Observation(lease.version, now)
    if lease.holder == me:
        return Step.RENEW, seen
    if not lease.holder or now - seen.since >= lease.duration:
        return Step.TAKE, seen
    return Step.WAIT, seen


def taken(lease: LeaseView | None, me: str, now: datetime) -> Holding:
    """A new holder begins."""
    return Holding(me, now, now, 0 if lease is None else lease.transitions + 1)


def renewed(lease: LeaseView, me: str, now: datetime) -> Holding:
    return replace(taken(lease, me, now), acquired=None, transitions=lease.transitions)
