"""Which key signs, and which are published. Pure: keys and the time in, keys out.

A new key is published a while before it signs, so that whoever caches the key set knows it in
time; an old one stays published until the last token that it signed has expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from atenet.ateapi.store import SigningKey

__all__ = ["LONGEST_TOKEN", "PUBLISHED_AHEAD", "published", "retired", "signing"]

LONGEST_TOKEN = 3600.0
# Twice what the key set's answer allows to be kept.
PUBLISHED_AHEAD = 600.0
# Clocks of verifiers and of the control planes that share the keys.
_SKEW = 300.0


def signing(keys: Sequence[SigningKey], now: float) -> SigningKey | None:
    """The newest that has started to sign; None when there is none."""
    begun = [key for key in keys if key.signs_from <= now]
    return max(begun, key=lambda key: (key.signs_from, key.kid), default=None)


def published(keys: Sequence[SigningKey], now: float) -> list[SigningKey]:
    """Every key that a verifier may meet, now or soon; the one that signs first."""
    gone = retired(keys, now)
    left = [key for key in keys if key not in gone]
    current = signing(keys, now)
    return sorted(left, key=lambda key: (key is not current, -key.signs_from, key.kid))


def retired(keys: Sequence[SigningKey], now: float) -> list[SigningKey]:
    """Those whose last token has expired."""
    ordered = sorted(keys, key=lambda key: (key.signs_from, key.kid))
    pairs = pairwise(ordered)
    return [old for old, new in pairs if new.signs_from + LONGEST_TOKEN + _SKEW <= now]
