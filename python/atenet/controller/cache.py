"""What the API server is known to hold of one kind: what was listed, watched, and written by oneself.

An answer to one's own write is taken in at once, so that no decision is ever made again because the
watch is a moment behind. Versions of one kind can be compared (KEP-5504); an older one never replaces
a newer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["Cache", "Key", "key_of", "version_of"]

_T = TypeVar("_T")
# Objects that are gone are remembered for as long as an older word about them may be under way.
_MOST_GONE = 4096


class Key(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key_of(thing: Any) -> Key:
    return Key(thing.metadata.namespace or "", thing.metadata.name)


def version_of(thing: Any) -> int:
    return int(thing.metadata.resourceVersion)


class Cache(Generic[_T]):
    """`group` says to which key's turn an object belongs; None: to nobody's. `changed` is told it, where
    `matters` finds a difference that somebody must look at, and `removed` each object that is gone."""

    def __init__(
        self,
        group: Callable[[_T], Key | None],
        changed: Callable[[Key], None],
        removed: Callable[[_T], None] = lambda _: None,
        matters: Callable[[_T, _T], bool] = lambda _before, _after: True,
    ) -> None:
        self._matters = matters
        self._group = group
        self._changed = changed
        self._removed = removed
        self._things: dict[Key, _T] = {}
        self._groups: dict[Key, dict[Key, _T]] = {}
        self._gone: dict[str, int] = {}
        self._listed: dict[str, asyncio.Event] = {}

    def get(self, key: Key) -> _T | None:
        return self._things.get(key)

    def group(self, key: Key) -> list[_T]:
        """All of one group, without looking at any other."""
        return list(self._groups.get(key, {}).values())

    def groups(self) -> Iterator[Key]:
        return iter(list(self._groups))

    def __len__(self) -> int:
        return len(self._things)

    async def listed(self, namespace: str = "*") -> None:
        """Until it knew all there are in that namespace, once."""
        await self._event(namespace).wait()

    def take(self, thing: _T) -> None:
        """One that was created, changed or read, by whomever."""
        key = key_of(thing)
        known = self._things.get(key)
        if version_of(thing) <= self._gone.get(_uid(thing), 0):
            return
        if known is not None and version_of(thing) <= version_of(known):
            return
        self._put(key, thing)

    def drop(self, thing: _T) -> None:
        """One that is deleted; `thing` is its last state."""
        key = key_of(thing)
        self._remember_gone(_uid(thing), version_of(thing))
        known = self._things.get(key)
        if known is not None and _uid(known) == _uid(thing):
            self._remove(key)

    def replace(self, things: Iterable[_T], version: int, namespace: str = "*") -> None:
        """All there are in the namespace (`*`: in any), as of `version`; what is known of later stays."""
        listed = {key_of(thing): thing for thing in things}
        for key, known in list(self._things.items()):
            within = namespace in ("*", key.namespace)
            if within and key not in listed and version_of(known) <= version:
                self._remove(key)
        for thing in listed.values():
            self.take(thing)
        self._event(namespace).set()

    def _put(self, key: Key, thing: _T) -> None:
        before = self._things.get(key)
        if before is not None and (
            _uid(before) != _uid(thing) or self._group(before) != self._group(thing)
        ):
            self._remove(key)
        self._things[key] = thing
        group = self._group(thing)
        if group is not None:
            self._groups.setdefault(group, {})[key] = thing
            if before is None or self._matters(before, thing):
                self._changed(group)

    def _remove(self, key: Key) -> None:
        thing = self._things.pop(key)
        self._removed(thing)
        group = self._group(thing)
        if group is None:
            return
        members = self._groups[group]
        del members[key]
        if not members:
            del self._groups[group]
        self._changed(group)

    def _event(self, namespace: str) -> asyncio.Event:
        return self._listed.setdefault(namespace, asyncio.Event())

    def _remember_gone(self, uid: str, version: int) -> None:
        self._gone[uid] = version
        while len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]


def _uid(thing: Any) -> str:
    return str(thing.metadata.uid)
