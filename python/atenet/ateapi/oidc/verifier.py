"""Checks one bearer token, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
import jwt

from atenet.ateapi.callers import TokenError
from atenet.ateapi.failure import CallError
from atenet.ateapi.oidc.claims import RoleMap
from atenet.ateapi.oidc.fetch import Source
from atenet.ateapi.oidc.keys import ALGORITHMS, KeySet, NoKeysError
from atenet.ateapi.roles import Role
from atenet.errors import AteError

__all__ = ["TokenFlags", "Verifier", "verifier_for"]

_LONGEST = 16 * 1024
_LONGEST_SUBJECT = 256
_REQUIRED = ("iss", "sub", "aud", "exp", "iat")


class TokenFlags(Protocol):
    """The flags of `ateapi serve` that say whose tokens are taken."""

    @property
    def token_issuer(self) -> str | None: ...
    @property
    def token_audience(self) -> tuple[str, ...]: ...
    @property
    def token_keys(self) -> str: ...
    @property
    def token_roots(self) -> Path | None: ...
    @property
    def token_algorithm(self) -> tuple[str, ...]: ...
    @property
    def token_role_claim(self) -> str: ...
    @property
    def token_role(self) -> tuple[str, ...]: ...
    @property
    def token_leeway(self) -> float: ...


def verifier_for(flags: TokenFlags) -> Verifier | None:
    """What the flags ask for; None without an issuer. Raises AteError naming the flag."""
    if flags.token_issuer is None:
        return None
    if not flags.token_audience or not all(flags.token_audience):
        raise AteError("--token-issuer needs --token-audience", hint="whom its tokens must be for")
    unknown = set(flags.token_algorithm) - set(ALGORITHMS)
    if unknown or not flags.token_algorithm:
        raise AteError(
            f"--token-algorithm cannot be {', '.join(sorted(unknown)) or 'empty'}",
            hint=f"any of {', '.join(ALGORITHMS)}",
        )
    if "://" in flags.token_keys and not flags.token_keys.startswith("https://"):
        raise AteError("--token-keys must be an https URL or a file")
    if not flags.token_keys and not flags.token_issuer.startswith("https://"):
        raise AteError(
            "--token-issuer must be an https URL, or --token-keys say where its keys are"
        )
    source = Source(flags.token_issuer, flags.token_keys, flags.token_roots)
    return Verifier(
        issuer=flags.token_issuer,
        audiences=flags.token_audience,
        algorithms=flags.token_algorithm,
        leeway=flags.token_leeway,
        keys=KeySet(source),
        roles=RoleMap(flags.token_role_claim, flags.token_role),
    )


@dataclass(frozen=True)
class Verifier:
    """See `callers.TokenVerifier`. `leeway`: seconds by which clocks may differ."""

    issuer: str
    audiences: Sequence[str]
    algorithms: Sequence[str]
    leeway: float
    keys: KeySet
    roles: RoleMap

    async def verify(self, token: str) -> tuple[str, frozenset[Role]]:
        """(`<issuer>#<subject>`, roles). Raises TokenError, and CallError (Unavailable) while the
        issuer's keys cannot be had."""
        kid, algorithm = self._head(token)
        try:
            key = await self.keys.key(kid, algorithm)
        except NoKeysError as e:
            raise CallError(grpc.StatusCode.UNAVAILABLE, str(e)) from e
        if key is None:
            raise TokenError("the token is signed by a key that its issuer does not publish")
        claims = self._claims(token, key, algorithm)
        subject = claims["sub"]
        if not subject or len(subject) > _LONGEST_SUBJECT or not subject.isprintable():
            raise TokenError("the token's subject cannot be used")
        return f"{self.issuer}#{subject}", self.roles.of(claims)

    def _head(self, token: str) -> tuple[str, str]:
        if not token or len(token) > _LONGEST:
            raise TokenError("the token is empty or too long")
        try:
            head = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as e:
            raise TokenError("the token is not a signed JSON Web Token") from e
        algorithm, kid = head.get("alg"), head.get("kid")
        if algorithm not in self.algorithms:
            raise TokenError("the token is signed in a way that is not accepted here")
        if not isinstance(kid, str) or not kid:
            raise TokenError("the token does not name its key (kid)")
        return kid, str(algorithm)

    def _claims(self, token: str, key: Any, algorithm: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=list(self.audiences),
                issuer=self.issuer,
                leeway=self.leeway,
                options={"require": list(_REQUIRED)},
            )
        except jwt.ExpiredSignatureError as e:
            raise TokenError("the token has expired") from e
        except jwt.ImmatureSignatureError as e:
            raise TokenError("the token is not valid yet") from e
        except jwt.InvalidAudienceError as e:
            raise TokenError("the token is for another audience") from e
        except jwt.InvalidIssuerError as e:
            raise TokenError("the token is from another issuer") from e
        except jwt.MissingRequiredClaimError as e:
            raise TokenError(f"the token has no claim {e.claim}") from e
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as e:
            raise TokenError("the token does not verify") from e
