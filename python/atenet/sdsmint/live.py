"""Which names have a leaf at Envoy now: bounded, the oldest ones taken back first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

__all__ = ["Live", "Stream"]


class Stream(Protocol):
    """One of Envoy's streams; it holds one name or several."""

    def take_back(self, names: list[str]) -> None:
        """Tells Envoy that these are gone."""


class Live:
    """At most `limit` pairs of a stream and a name."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[tuple[int, str], Stream] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, stream: Stream, name: str) -> None:
        """As the newest. The oldest are taken back if there are too many."""
        self._held[id(stream), name] = stream
        self._held.move_to_end((id(stream), name))
        while len(self._held) > self._limit:
            (_, oldest), holder = self._held.popitem(last=False)
            holder.take_back([oldest])

    def remove(self, stream: Stream, names: Iterator[str] | list[str]) -> None:
        for name in names:
            self._held.pop((id(stream), name), None)

    def forget(self, stream: Stream) -> None:
        """The stream is over."""
        for key in [key for key in self._held if key[0] == id(stream)]:
            del self._held[key]

    def take_all_back(self) -> int:
        """How many there were."""
        held, self._held = self._held, OrderedDict()
        by_stream: dict[int, tuple[Stream, list[str]]] = {}
        for (key, name), stream in held.items():
            by_stream.setdefault(key, (stream, []))[1].append(name)
        for stream, names in by_stream.values():
            stream.take_back(names)
        return len(held)
