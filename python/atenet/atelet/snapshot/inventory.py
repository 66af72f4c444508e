"""What is in a store, against what records name: lists, verifies and collects."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from atenet.atelet.snapshot.manifest import FILE_NAME
from atenet.errors import AteError
from atenet.snapshots import ObjectStore, SnapshotUris

__all__ = ["Inventory", "Listed"]

_DEPTH = 3


@dataclass(frozen=True)
class Listed:
    """`modified`: of its newest object, seconds since 1970; `complete`: it has its manifest."""

    uri: str
    key: str
    objects: int
    size: int
    modified: float
    complete: bool


class Inventory:
    """Every method blocks and may raise OSError."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._uris = SnapshotUris(objects.url)

    def look(self) -> Iterator[Listed]:
        """All snapshots and beginnings of some, by key."""
        found: dict[str, Listed] = {}
        for each in self._objects.list():
            parts = each.key.split("/")
            if len(parts) <= _DEPTH:
                continue
            key = "/".join(parts[:_DEPTH])
            before = found.get(key) or Listed(self._uris.of(key), key, 0, 0, 0.0, complete=False)
            found[key] = Listed(
                before.uri,
                key,
                before.objects + 1,
                before.size + each.size,
                max(before.modified, each.modified),
                before.complete or "/".join(parts[_DEPTH:]) == FILE_NAME,
            )
        yield from (found[key] for key in sorted(found))

    def collect(
        self, listed: list[Listed], named: Set[str], *, before: float, remove: bool
    ) -> list[Listed]:
        """Those of a look that no record names and that have not changed since `before`; removed if asked.

        `named` must have been read after the look: whatever is stored was named first. Raises
        AteError when records name another store: this one has moved, say, and all of it is theirs.
        """
        if foreign := sorted(uri for uri in named if self._uris.key(uri) is None):
            raise AteError(
                f"records name {len(foreign)} snapshots that are not in {self._objects.url}, "
                f"{foreign[0]} for one: nothing is removed",
                hint="was the directory moved? Its snapshots belong where the records say",
            )
        doomed = [each for each in listed if each.uri not in named and each.modified < before]
        if remove:
            for each in doomed:
                self._objects.remove(each.key)
        return doomed
