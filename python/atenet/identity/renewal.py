"""When to renew. Pure: times in, decisions out."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

__all__ = ["AuthorityStep", "authority_step", "leaf_due", "lived"]


class AuthorityStep(Enum):
    """What an authority's age asks for."""

    NONE = "none"
    PREPARE = "prepare"  # make the successor and let everybody trust it
    SWITCH = "switch"  # issue from the successor


def lived(start: datetime, end: datetime, now: datetime) -> float:
    """How much of its life has passed: 0 at the start, 1 at the end; a life of nothing is over."""
    total = (end - start).total_seconds()
    return (now - start).total_seconds() / total if total > 0 else 1.0


def leaf_due(start: datetime, end: datetime, now: datetime) -> bool:
    """Renew at two thirds of life, so that a third is left for what goes wrong.

    A leaf from the future is due too: this clock was wrong then or is wrong now.
    """
    return now < start or lived(start, end, now) >= 2 / 3


def authority_step(
    start: datetime, end: datetime, now: datetime, *, has_successor: bool
) -> AuthorityStep:
    """Bundles overlap: peers trust the successor long before the first leaf it issues."""
    age = lived(start, end, now)
    if not has_successor:
        return AuthorityStep.PREPARE if age >= 1 / 2 else AuthorityStep.NONE
    return AuthorityStep.SWITCH if age >= 2 / 3 else AuthorityStep.NONE
