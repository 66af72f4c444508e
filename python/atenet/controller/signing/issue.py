"""A granted certificate, as the API server takes it. Pure but for the randomness of a signature."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from atenet.controller.signing.request import Grant
from atenet.identity import pem
from atenet.identity.authority import Authority

__all__ = ["SHORTEST", "Issued", "issue"]

# The API server wants a start within five minutes of its own clock, whatever that differs from ours.
_BACKDATE = timedelta(minutes=2)
# It takes no certificate that lives less.
SHORTEST = timedelta(hours=1)


@dataclass(frozen=True)
class Issued:
    """A chain and its times, UTC, whole seconds."""

    chain: str
    not_before: datetime
    begin_refresh_at: datetime
    not_after: datetime


def issue(grant: Grant, authority: Authority, now: datetime) -> Issued | None:
    """None when the authority has less life left than a certificate must have."""
    leaf = authority.issue(
        grant.key,
        uri=grant.want.uri,
        dns=grant.want.dns,
        usages=grant.want.usages,
        lifetime=grant.lifetime,
        backdate=_BACKDATE,
        now=now,
    )
    life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    return None if life < SHORTEST else _issued(leaf, life)


def _issued(leaf: x509.Certificate, life: timedelta) -> Issued:
    start = leaf.not_valid_before_utc
    # As everywhere here: at two thirds, so that a third is left for what goes wrong.
    refresh = start + timedelta(seconds=int(life.total_seconds() * 2 / 3))
    return Issued(pem.certificate_pem(leaf).decode(), start, refresh, leaf.not_valid_after_utc)
