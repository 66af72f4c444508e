"""An OpenID Connect issuer on a real HTTPS server: signs tokens, publishes keys, counts who asks."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from atenet.address import Address
from atenet.pages import Page, PageServer, Query
from cryptography.hazmat.primitives.asymmetric import ec, rsa

_ALGORITHMS: dict[str, Any] = {"ES": jwt.algorithms.ECAlgorithm, "RS": jwt.algorithms.RSAAlgorithm}


@dataclass
class TokenIssuer:
    """`keys`: kid -> (algorithm, private key); the published ones are all but `hidden`."""

    url: str = ""
    keys: dict[str, tuple[str, Any]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    asked: int = 0
    down: bool = False
    extra: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kid: str, algorithm: str = "ES256") -> None:
        key: Any = ec.generate_private_key(ec.SECP256R1())
        if algorithm.startswith("RS"):
            key = rsa.generate_private_key(65537, 2048)
        self.keys[kid] = (algorithm, key)

    def token(self, kid: str = "k1", *, head: dict[str, Any] | None = None, **changed: Any) -> str:
        """A good token of somebody with the group `staff`, with these claims instead; None: without."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": "alice",
            "aud": "atenet",
            "iat": now,
            "exp": now + 600,
            "roles": ["staff", "something-else"],
        }
        claims = {k: v for k, v in (claims | changed).items() if v is not None}
        algorithm, key = self.keys[kid]
        return jwt.encode(claims, key, algorithm, headers={"kid": kid} | (head or {}))

    def key_set(self) -> dict[str, Any]:
        shown = [kid for kid in self.keys if kid not in self.hidden]
        return {"keys": [self._jwk(kid) for kid in shown] + self.extra}

    def _jwk(self, kid: str) -> dict[str, Any]:
        algorithm, key = self.keys[kid]
        public = json.loads(_ALGORITHMS[algorithm[:2]].to_jwk(key.public_key()))
        return {**public, "kid": kid, "use": "sig"}

    def _keys_page(self, _query: Query) -> Page:
        self.asked += 1
        if self.down:
            return Page("down\n", "503 Service Unavailable")
        return Page(json.dumps(self.key_set()), content_type="application/json")

    def _discovery(self, _query: Query) -> Page:
        return Page(json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}))


@contextmanager
def token_issuer(credential: Path) -> Iterator[TokenIssuer]:
    """Serves with that key and chain, which must name 127.0.0.1; has the key `k1`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(credential)
    made = TokenIssuer()
    made.add("k1")
    pages = {"/keys": made._keys_page, "/.well-known/openid-configuration": made._discovery}
    with PageServer("--test", Address("127.0.0.1", 0), pages, tls=lambda: context) as server:
        made.url = f"https://{server.address}"
        yield made
