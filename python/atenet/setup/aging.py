"""Authorities that have been signing for long, or will not for much longer: told before it hurts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from atenet.controller.signing import names

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["OLD", "SOON", "Aging", "aging"]

# Ten years are for those who forget. A key that is used for years is one that was copied by more people
# than are remembered, and a rotation that was never tried is one that fails when it is needed.
OLD = timedelta(days=2 * 365)
# Time to plan one: actors have to be started anew for a new interception authority.
SOON = timedelta(days=365)


@dataclass(frozen=True)
class Aging:
    """`over`: nothing that it signed is accepted any more."""

    where: str
    message: str
    hint: str
    over: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def aging(bundles: Mapping[str, tuple[Certificate, ...]], now: datetime) -> Iterator[Aging]:
    """`bundles`: an authority's name -> its certificates; the youngest counts: another is being replaced by it."""
    for name in names.ALL_AUTHORITIES:
        where = f"authority {name}"
        if not bundles.get(name):
            again = "`ate-setup install` makes it where it is missing"
            yield Aging(where, "its certificate is not there", again, over=True)
            continue
        youngest = max(bundles[name], key=lambda each: each.not_valid_before_utc)
        start, end = youngest.not_valid_before_utc, youngest.not_valid_after_utc
        found = _by_itself(start, end, now) if name in names.SIGNED_HERE else _told(start, end, now)
        if found is not None:
            message, over = found
            yield Aging(where, message, _hint(name), over)


def _told(start: datetime, end: datetime, now: datetime) -> tuple[str, bool] | None:
    """Of one that is rotated only when somebody says so."""
    if now >= end:
        return f"ended on {end:%Y-%m-%d}", True
    if end - now < SOON:
        return f"ends on {end:%Y-%m-%d}, in {_days(end - now)}", False
    if now - start > OLD:
        return f"has signed since {start:%Y-%m-%d}, for {_days(now - start)}", False
    return None


def _by_itself(start: datetime, end: datetime, now: datetime) -> tuple[str, bool] | None:
    """Of one that ate-controller rotates from half its life on: long after that, it did not."""
    if now >= end:
        return f"ended on {end:%Y-%m-%d}; ate-controller did not replace it", True
    if end - now < (end - start) / 4:
        days = _days(end - now)
        return f"ends on {end:%Y-%m-%d}, in {days}; ate-controller has not replaced it", False
    return None


def _hint(name: str) -> str:
    if name in names.SIGNED_HERE:
        return (
            f"`kubectl -n ate-system logs deploy/ate-controller` says why; "
            f"`ate-setup rotate-ca {name}` does it now"
        )
    if name == names.INTERCEPTION:
        return (
            f"`ate-setup rotate-ca {name}`; actors that run on have to be started anew to trust the next "
            "(docs/kubernetes/identity.md)"
        )
    return f"`ate-setup rotate-ca {name}`, while everything runs"


def _days(length: timedelta) -> str:
    return "1 day" if length.days == 1 else f"{length.days} days"
