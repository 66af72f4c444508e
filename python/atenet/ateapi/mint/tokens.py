"""Actors' JSON Web Tokens, and what verifiers are told of them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any

import grpc
import jwt

from atenet.ateapi.failure import CallError
from atenet.ateapi.mint import keyring
from atenet.ateapi.mint.keys import ALGORITHM, public_jwk
from atenet.ateapi.mint.vault import Vault
from atenet.ateapi.store import SigningKey, Store
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb

__all__ = ["JWKS_PATH", "TokenMint", "claims_for", "discovery"]

_log = logging.getLogger(__name__)
_BACKDATE = 300
JWKS_PATH = "/.well-known/jwks.json"


class TokenMint:
    """`issuer`: the `iss` of every token, an https URL below which the key set is served."""

    def __init__(self, store: Store, issuer: str, vault: Vault) -> None:
        self.issuer = issuer
        self._store = store
        self._vault = vault

    async def issue(
        self, actor: pb.Actor, audiences: Sequence[str], seconds: int, now: float
    ) -> tuple[str, int]:
        """The token and when it expires, seconds since the epoch. Raises CallError."""
        keys = await self._store.read(lambda tx: tx.signing_keys.all())
        key = keyring.signing(keys, now)
        if key is None:
            raise CallError(grpc.StatusCode.UNAVAILABLE, "there is no key to sign with; retry")
        claims = claims_for(actor, self.issuer, audiences, seconds, int(now))
        token = jwt.encode(
            claims, self._vault.private_key(key), ALGORITHM, headers={"kid": key.kid}
        )
        return token, claims["exp"]

    async def key_set(self, now: float) -> dict[str, Any]:
        """The JSON Web Key Set that verifies every token that has not expired."""
        keys = await self._store.read(lambda tx: tx.signing_keys.all())
        published = [self._shown(key) for key in keyring.published(keys, now)]
        return {"keys": [shown for shown in published if shown is not None]}

    def _shown(self, key: SigningKey) -> dict[str, str] | None:
        try:
            return public_jwk(self._vault, key)
        except AteError as e:
            _log.error("a signing key is not published", extra={"error": e.message})
            return None


def claims_for(
    actor: pb.Actor, issuer: str, audiences: Sequence[str], seconds: int, now: int
) -> dict[str, Any]:
    """What the token says. `aud` is a list even of one, `nbf` allows for slow clocks."""
    meta = actor.metadata
    return {
        "iss": issuer,
        "sub": f"actor/{meta.atespace}/{meta.name}",
        "aud": list(audiences),
        "iat": now,
        "nbf": now - _BACKDATE,
        "exp": now + seconds,
        "jti": str(uuid.uuid4()),
        "ate.dev": {"atespace": meta.atespace, "actorName": meta.name, "actorUID": meta.uid},
    }


def discovery(issuer: str) -> dict[str, Any]:
    """OpenID Connect discovery: enough for a verifier to find the keys."""
    return {
        "issuer": issuer,
        "jwks_uri": f"{issuer}{JWKS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
