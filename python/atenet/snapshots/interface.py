"""What a snapshot needs of the place that it is kept in. Every method blocks: call it on a thread.

Keys are paths without a leading slash. Whatever goes wrong is an OSError; an object that is not
there, FileNotFoundError.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Protocol

__all__ = ["ObjectStore", "StoredObject"]


@dataclass(frozen=True)
class StoredObject:
    """`modified`: seconds since 1970."""

    key: str
    size: int
    modified: float


class ObjectStore(Protocol):
    url: str
    """What every URI in it begins with; no trailing slash."""

    def put(self, key: str, content: bytes) -> None:
        """Whole or not at all, and durable when it returns."""

    def get(self, key: str) -> bytes: ...

    def writer(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """Durable when the block ends. One that raises leaves nothing that anybody may read: what
        counts is the manifest, which is put after it."""

    def reader(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """From the beginning to the end, once."""

    def exists(self, key: str) -> bool: ...

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """All objects below the prefix, which ends in a slash or is empty."""

    def remove(self, prefix: str) -> None:
        """All objects below `prefix/`, the one of its manifest first. Absent ones are fine."""
