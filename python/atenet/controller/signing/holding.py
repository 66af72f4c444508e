"""What the Secret of an authority holds. Pure: the Secret's data and notes in, and out."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from atenet.controller.signing import names
from atenet.errors import AteError
from atenet.identity.authority import Authority

__all__ = ["LIFETIMES", "Holding", "create_authority", "fingerprint"]

_CURRENT, _NEXT = "current.pem", "next.pem"
_TRUSTED_SINCE = "ate.dev/trusted-since"
_SWITCHED_AT = "ate.dev/switched-at"
_RETIRING = "ate.dev/retiring"

_YEAR = timedelta(days=365)
# What ate-controller signs with it rotates by itself. The other two change when somebody says so.
LIFETIMES = {
    names.POD_IDENTITY: _YEAR,
    names.SERVICE_DNS: _YEAR,
    names.ACTOR_IDENTITY: 10 * _YEAR,
    names.INTERCEPTION: 10 * _YEAR,
}


@dataclass(frozen=True)
class Holding:
    """The keys of one authority, and where its rotation is. `repr` shows no key."""

    name: str
    current: Authority
    following: Authority | None = None
    trusted_since: datetime | None = None
    switched_at: datetime | None = None
    retiring: str | None = None  # fingerprint

    @classmethod
    def parse(
        cls, name: str, data: Mapping[str, str], notes: Mapping[str, str], now: datetime
    ) -> Holding:
        """`data` as the API has it (base64), `notes` the annotations. Raises AteError naming the key."""
        current = _authority(name, data, _CURRENT, now)
        if current is None:
            raise AteError(
                f"Secret {names.authority_secret(name)} has no {_CURRENT}",
                hint="restore the Secret from a backup",
            )
        return cls(
            name,
            current,
            _authority(name, data, _NEXT, now),
            _time(notes.get(_TRUSTED_SINCE)),
            _time(notes.get(_SWITCHED_AT)),
            notes.get(_RETIRING),
        )

    def data(self) -> dict[str, str]:
        """The Secret's data, base64."""
        found = {_CURRENT: self.current, _NEXT: self.following}
        return {
            key: b64encode(each.pem()).decode() for key, each in found.items() if each is not None
        }

    def notes(self) -> dict[str, str]:
        """The annotations that say where a rotation is."""
        found = {
            _TRUSTED_SINCE: self.trusted_since and self.trusted_since.isoformat(),
            _SWITCHED_AT: self.switched_at and self.switched_at.isoformat(),
            _RETIRING: self.retiring,
        }
        return {key: value for key, value in found.items() if value}

    def prepared(self, now: datetime) -> Holding:
        """With a successor beside it."""
        return replace(self, following=create_authority(self.name, now), trusted_since=None)

    def trusted(self, now: datetime) -> Holding:
        """Every namespace has the successor in its bundle."""
        return replace(self, trusted_since=now)

    def switched(self, now: datetime) -> Holding:
        """The successor signs; the old key is gone."""
        if self.following is None:
            raise AteError(f"authority {self.name} has no successor to sign with")
        old = fingerprint(self.current.certificate)
        return Holding(self.name, self.following, switched_at=now, retiring=old)

    def rested(self) -> Holding:
        """The old one is forgotten."""
        return Holding(self.name, self.current, self.following)


def create_authority(name: str, now: datetime | None = None) -> Authority:
    """A new authority, of the lifetime that this one has in a cluster."""
    return Authority.create(name, lifetime=LIFETIMES[name], now=now)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256, hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def _authority(name: str, data: Mapping[str, str], key: str, now: datetime) -> Authority | None:
    if key not in data:
        return None
    where = Path(names.authority_secret(name)) / key
    return Authority.parse(b64decode(data[key]), where, name=name, now=now)


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None
