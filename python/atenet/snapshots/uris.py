"""Names of snapshots: `<store>/<atespace>/<actor uid>/<snapshot id>`."""

from __future__ import annotations

import uuid
from urllib.parse import quote, unquote

__all__ = ["SnapshotUris"]

_DEPTH = 3


class SnapshotUris:
    """`url`: the store's. Pure."""

    def __init__(self, url: str) -> None:
        self._url = url

    def new(self, atespace: str, uid: str) -> str:
        """A name that no snapshot has had."""
        return self.of(f"{atespace}/{uid}/{uuid.uuid4().hex}")

    def of(self, key: str) -> str:
        return f"{self._url}/{quote(key)}"

    def key(self, uri: str) -> str | None:
        """The key below which its objects are; None when it is no snapshot of this store."""
        if not uri.startswith(f"{self._url}/"):
            return None
        key = unquote(uri.removeprefix(f"{self._url}/"))
        parts = key.split("/")
        plain = all(part not in ("", ".", "..") and "\0" not in part for part in parts)
        return key if plain and len(parts) == _DEPTH else None
