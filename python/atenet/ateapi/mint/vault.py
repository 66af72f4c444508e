"""Signing keys at rest: sealed with a secret that is not in the store, where one is given."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from atenet.ateapi.store import SigningKey
from atenet.errors import AteError
from atenet.identity import files, pem

__all__ = ["Vault"]

_SEALED = b"sealed1:"
_NONCE_BYTES = 12
_LEAST_SECRET = 32


class Vault:
    """Makes keys to be stored, and opens those that are. Without a secret keys are stored as they
    are, and whoever reads the store can sign; keys stored so before a secret was given stay usable.
    """

    def __init__(self, secret: Path | None = None) -> None:
        """`secret`: a file (0600) of at least 32 bytes. Raises AteError naming it."""
        self._cipher = None if secret is None else AESGCM(_derived(secret))
        self._opened: dict[str, ec.EllipticCurvePrivateKey] = {}

    def stored(self, kid: str, key: ec.EllipticCurvePrivateKey) -> bytes:
        """The key as the store is to keep it."""
        plain = pem.key_pem(key)
        if self._cipher is None:
            return plain
        nonce = os.urandom(_NONCE_BYTES)
        return _SEALED + nonce + self._cipher.encrypt(nonce, plain, kid.encode())

    def refuse_weaker(self, key: SigningKey) -> None:
        """Raises AteError when `key` is sealed and what this one stores would not be."""
        if self._cipher is None and key.private_key.startswith(_SEALED):
            raise _needs_secret(key)

    def private_key(self, key: SigningKey) -> ec.EllipticCurvePrivateKey:
        """Raises AteError when it was sealed with another secret, or is no key at all."""
        found = self._opened.get(key.kid)
        if found is None:
            found = self._opened[key.kid] = _loaded(key, self._plain(key))
        return found

    def _plain(self, key: SigningKey) -> bytes:
        if not key.private_key.startswith(_SEALED):
            return key.private_key
        if self._cipher is None:
            raise _needs_secret(key)
        sealed = key.private_key.removeprefix(_SEALED)
        try:
            return self._cipher.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], key.kid.encode()
            )
        except InvalidTag as e:
            raise AteError(
                f"signing key {key.kid} is not sealed with this --keys-secret",
                hint="every control plane on a store needs the same one; `ateapi keys revoke` "
                "removes a key that cannot be opened any more",
            ) from e


def _needs_secret(key: SigningKey) -> AteError:
    return AteError(
        f"signing key {key.kid} is sealed", hint="give --keys-secret, the same everywhere"
    )


def _derived(secret: Path) -> bytes:
    content = files.read_private(secret).strip()
    if len(content) < _LEAST_SECRET:
        raise AteError(
            f"--keys-secret {secret} has {len(content)} bytes; {_LEAST_SECRET} at least",
            hint="make one with `openssl rand -base64 48`",
        )
    return HKDF(hashes.SHA256(), 32, None, b"atenet signing keys").derive(content)


def _loaded(key: SigningKey, content: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        loaded = serialization.load_pem_private_key(content, password=None)
    except ValueError:
        loaded = None
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise AteError(
            f"signing key {key.kid} is damaged", hint="remove it with `ateapi keys revoke`"
        )
    return loaded
