"""What several processes denied, as one list. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from atenet.denials.denial import Denial

__all__ = ["merged"]


def merged(denials: Iterable[Denial], *, most: int | None = None) -> list[Denial]:
    """The same thing denied in several places is one, counted together. Newest first, at most `most`."""
    found: dict[tuple[object, ...], Denial] = {}
    for each in denials:
        what = (each.kind, each.host, each.port, each.rule, each.reason, each.detail)
        known = found.get(what)
        found[what] = each if known is None else _both(known, each)
    return sorted(found.values(), key=lambda each: each.last, reverse=True)[:most]


def _both(one: Denial, other: Denial) -> Denial:
    return replace(
        one,
        first=min(one.first, other.first),
        last=max(one.last, other.last),
        times=one.times + other.times,
    )
