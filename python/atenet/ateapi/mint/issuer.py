"""The issuer's pages over HTTPS: discovery, and the keys that verify actors' tokens."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from atenet.address import Address
from atenet.ateapi.mint.tokens import JWKS_PATH, TokenMint, discovery
from atenet.ateapi.store import BusyError
from atenet.errors import AteError
from atenet.pages import Page, PageServer, Query
from atenet.tls_context import ServerContext

__all__ = ["IssuerServer", "check_issuer"]

_log = logging.getLogger(__name__)
# How long a verifier may keep the key set; keys are published twice as long before they sign.
_CACHE = "public, max-age=300"
_STORE_SECONDS = 5.0


class IssuerServer:
    """Serves on threads of its own while the block lasts; the keys are read on the event loop.

    `credential` (key and chain) is looked at again for each connection.
    """

    def __init__(
        self, address: Address, credential: Path, mint: TokenMint, clock: Callable[[], float]
    ) -> None:
        """Raises AteError when it cannot bind, or the credential is of no use."""
        self._loop = asyncio.get_running_loop()
        self._mint = mint
        self._clock = clock
        base = urlsplit(mint.issuer).path
        pages = {
            f"{base}/.well-known/openid-configuration": self._discovery,
            f"{base}{JWKS_PATH}": self._key_set,
        }
        self._server = PageServer(
            "--issuer-listen", address, pages, tls=ServerContext(credential).current
        )
        self.address = str(self._server.address)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)

    def _discovery(self, _query: Query) -> Page:
        return _json(discovery(self._mint.issuer))

    def _key_set(self, _query: Query) -> Page:
        asked = asyncio.run_coroutine_threadsafe(self._mint.key_set(self._clock()), self._loop)
        try:
            return _json(asked.result(_STORE_SECONDS))
        except (BusyError, TimeoutError) as e:
            _log.warning("the key set cannot be read", extra={"error": str(e)})
            return Page("the keys cannot be read now\n", "503 Service Unavailable")


def check_issuer(url: str) -> str:
    """An issuer as it stands in tokens. Raises AteError."""
    parts = urlsplit(url)
    odd = parts.query or parts.fragment or parts.username or url.endswith("/")
    if parts.scheme != "https" or not parts.hostname or odd or not url.isprintable():
        raise AteError(
            f"--issuer {url!r} is not the URL of an issuer",
            hint="https://<host>[:<port>][/<path>], without query, fragment or final slash",
        )
    return url


def _json(body: dict[str, Any]) -> Page:
    return Page(json.dumps(body), content_type="application/json", cache=_CACHE)
