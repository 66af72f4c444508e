"""Signing keys: made, kept in the store, shown as JSON Web Keys without their private part."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from atenet.ateapi.mint import keyring
from atenet.ateapi.mint.vault import Vault
from atenet.ateapi.store import AuditEntry, SigningKey, Store, Transaction

__all__ = ["ALGORITHM", "ensure", "new_key", "public_jwk", "revoke", "rotate"]

ALGORITHM = "ES256"
_COORDINATE_BYTES = 32


def new_key(vault: Vault, now: float, signs_from: float) -> SigningKey:
    key = ec.generate_private_key(ec.SECP256R1())
    kid = _thumbprint(key.public_key())
    return SigningKey(kid, now, signs_from, vault.stored(kid, key))


def public_jwk(vault: Vault, key: SigningKey) -> dict[str, str]:
    """RFC 7517, for verifying only. Raises AteError when the key cannot be opened."""
    public = _coordinates(vault.private_key(key).public_key())
    return {**public, "kid": key.kid, "use": "sig", "alg": ALGORITHM}


async def ensure(store: Store, vault: Vault, now: float) -> None:
    """Makes the first key, which signs at once. Replicas that do so together agree afterwards:
    both keys are published, and the later one by (time, id) signs.

    Raises AteError when a key that is there cannot be opened.
    """

    def change(tx: Transaction) -> list[SigningKey]:
        if keyring.signing(tx.signing_keys.all(), now) is None:
            tx.signing_keys.add(new_key(vault, now, now))
        return tx.signing_keys.all()

    for key in await store.write(change):
        vault.private_key(key)


async def rotate(store: Store, vault: Vault, now: float, *, ahead: float, who: str) -> SigningKey:
    """Adds a key that signs from `now + ahead` on, and removes those that are retired.

    Where no key signs yet the new one does so at once. Raises AteError when the others are sealed
    and it would not be.
    """
    later, first = new_key(vault, now, now + ahead), new_key(vault, now, now)

    def change(tx: Transaction) -> SigningKey:
        keys = tx.signing_keys.all()
        for key in keys:
            vault.refuse_weaker(key)
        for old in keyring.retired(keys, now):
            tx.signing_keys.delete(old.kid)
        made = first if keyring.signing(keys, now) is None else later
        tx.signing_keys.add(made)
        tx.audit.append(_entry(now, who, "keys/rotate", made.kid))
        return made

    return await store.write(change)


async def revoke(store: Store, vault: Vault, kid: str, now: float, *, who: str) -> bool:
    """Removes a key at once: its tokens are worth nothing as soon as verifiers look again.

    A key that signs now is replaced by a new one in the same step. False if there is no such key.
    """

    def change(tx: Transaction) -> bool:
        keys = tx.signing_keys.all()
        if kid not in {key.kid for key in keys}:
            return False
        tx.signing_keys.delete(kid)
        for key in keys:
            vault.refuse_weaker(key)
        if keyring.signing([key for key in keys if key.kid != kid], now) is None:
            tx.signing_keys.add(new_key(vault, now, now))
        tx.audit.append(_entry(now, who, "keys/revoke", kid))
        return True

    return await store.write(change)


def _entry(at: float, who: str, method: str, kid: str) -> AuditEntry:
    return AuditEntry(at, who, method, f"signing_key/{kid}", "", "")


def _coordinates(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    numbers = key.public_numbers()
    return {"crv": "P-256", "kty": "EC", "x": _base64(numbers.x), "y": _base64(numbers.y)}


def _thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """RFC 7638: the same key has the same id everywhere."""
    canonical: Any = json.dumps(_coordinates(key), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _base64(number: int) -> str:
    raw = number.to_bytes(_COORDINATE_BYTES)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
