"""Reading a key set: over HTTPS, from the issuer's discovery, or from a file. Blocking."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

__all__ = ["FetchError", "Source", "discovered", "from_file", "from_url"]

_SECONDS = 5.0
_MOST_BYTES = 512 * 1024
_DISCOVERY = "/.well-known/openid-configuration"


class FetchError(Exception):
    """The keys cannot be read; the text says from where and why."""


class Source:
    """`keys`: an https URL or a file; empty: what the issuer's discovery names. `roots`: PEM of the
    authorities that the server must chain to; None: the system's."""

    def __init__(self, issuer: str, keys: str, roots: Path | None) -> None:
        self._issuer = issuer
        self._keys = keys
        self._roots = roots

    def read(self) -> dict[str, Any]:
        """The key set. Raises FetchError."""
        if not self._keys:
            return from_url(discovered(self._issuer, self._roots), self._roots)
        if self._keys.startswith("https://"):
            return from_url(self._keys, self._roots)
        return from_file(Path(self._keys))


def discovered(issuer: str, roots: Path | None) -> str:
    """Where the issuer says that its keys are. Raises FetchError."""
    found = from_url(issuer.rstrip("/") + _DISCOVERY, roots)
    at = found.get("jwks_uri")
    if found.get("issuer") != issuer:
        raise FetchError(f"{issuer}: its discovery speaks for another issuer")
    if not isinstance(at, str) or not at.startswith("https://"):
        raise FetchError(f"{issuer}: its discovery names no https jwks_uri")
    return at


def from_file(path: Path) -> dict[str, Any]:
    """Raises FetchError."""
    try:
        return _object(path.read_bytes(), str(path))
    except OSError as e:
        raise FetchError(f"cannot read {path}: {e.strerror}") from e


def from_url(url: str, roots: Path | None) -> dict[str, Any]:
    """Over https, without redirects, within seconds. Raises FetchError."""
    try:
        trust = ssl.create_default_context(cafile=roots)
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=trust), _NoRedirects(), _NoPlain()
        )
        with opener.open(url, timeout=_SECONDS) as answer:
            content = answer.read(_MOST_BYTES + 1)
    except HTTPError as e:
        e.close()
        raise FetchError(f"{url} answered {e.code}") from e
    except URLError as e:
        raise FetchError(f"cannot reach {url}: {e.reason}") from e
    except (OSError, ValueError, http.client.HTTPException) as e:
        raise FetchError(f"cannot reach {url}: {e}") from e
    return _object(content, url)


def _object(content: bytes, where: str) -> dict[str, Any]:
    if len(content) > _MOST_BYTES:
        raise FetchError(f"{where} is too long")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as e:
        raise FetchError(f"{where} is not JSON") from e
    if not isinstance(found, dict):
        raise FetchError(f"{where} is not a JSON object")
    return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever may redirect may choose the keys; and the target could be plain HTTP."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _NoPlain(urllib.request.HTTPHandler):
    def http_open(self, _request: Any) -> Any:
        raise URLError("it is not https")
