"""The issuer's keys, kept for a while and fetched again when a token names one that is not there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from atenet.ateapi.oidc.fetch import FetchError

__all__ = ["ALGORITHMS", "KeySet", "NoKeysError"]

_log = logging.getLogger(__name__)
# A key that the issuer withdrew is believed for this long at most while the issuer answers,
_FRESH_SECONDS = 300.0
# and for this long while it does not.
_STALE_SECONDS = 3600.0
# Tokens with made-up key ids must not make us storm the issuer.
_RETRY_SECONDS = 10.0
_LEAST_RSA_BITS = 2048

_CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
# Signatures that only the issuer can make. Never `none`, and never a shared secret (HS256).
ALGORITHMS = (*_RSA, *_CURVES, "EdDSA")


class NoKeysError(Exception):
    """The issuer's keys could not be had; a later call may succeed."""


class _Source(Protocol):
    def read(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class _Key:
    public: Any
    algorithm: str | None  # the only one that it is for, if the issuer says so


class KeySet:
    """Keys by id. `source` is asked on a thread of its own; one request at a time."""

    def __init__(self, source: _Source, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._keys: dict[str, _Key] = {}
        self._fetched = self._tried = float("-inf")
        self._fetching = asyncio.Lock()

    async def key(self, kid: str, algorithm: str) -> Any | None:
        """The public key of that id if it may verify that algorithm; None if there is none.

        Raises NoKeysError when it cannot be known.
        """
        found = self._keys.get(kid)
        if found is None or self._clock() - self._fetched > _FRESH_SECONDS:
            await self._refresh(kid)
            found = self._keys.get(kid)
        if self._clock() - self._fetched > _STALE_SECONDS:
            raise NoKeysError("the issuer's keys cannot be fetched now; retry")
        return found.public if found is not None and _fits(found, algorithm) else None

    async def _refresh(self, kid: str) -> None:
        async with self._fetching:
            now = self._clock()
            known = kid in self._keys and now - self._fetched <= _FRESH_SECONDS
            if known or now - self._tried < _RETRY_SECONDS:
                return  # whoever was before us in the lock has just looked
            self._tried = now
            try:
                keys = _parsed(await asyncio.to_thread(self._source.read))
            except FetchError as e:
                _log.warning("keeping the old keys of the token issuer", extra={"error": str(e)})
                return
            self._keys, self._fetched = keys, now


def _parsed(found: dict[str, Any]) -> dict[str, _Key]:
    """Those that can be used; the others are somebody else's."""
    listed = found.get("keys")
    if not isinstance(listed, list):
        raise FetchError("the key set has no list of keys")
    keys: dict[str, _Key] = {}
    for one in listed:
        kid = one.get("kid") if isinstance(one, dict) else None
        if not isinstance(kid, str) or one.get("use", "sig") != "sig" or one.get("kty") == "oct":
            continue
        try:
            keys[kid] = _Key(jwt.PyJWK(one).key, one.get("alg"))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            _log.warning("a key of the token issuer cannot be used", extra={"kid": kid[:100]})
    return keys


def _fits(key: _Key, algorithm: str) -> bool:
    """Whether a key is of the kind that the algorithm takes, and strong enough."""
    if key.algorithm not in (None, algorithm):
        return False
    public = key.public
    if algorithm in _RSA:
        return isinstance(public, rsa.RSAPublicKey) and public.key_size >= _LEAST_RSA_BITS
    if algorithm == "EdDSA":
        return isinstance(public, ed25519.Ed25519PublicKey)
    curve = _CURVES.get(algorithm)
    return (
        curve is not None
        and isinstance(public, ec.EllipticCurvePublicKey)
        and isinstance(public.curve, curve)
    )
