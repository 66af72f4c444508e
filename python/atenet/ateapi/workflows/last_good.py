"""Which snapshot a revert goes back to when the newest is what the actor could not start from. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from atenet.atelet.snapshot.examine import Examined
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Known", "Target", "last_good"]

_FULL = pb.SNAPSHOT_CONTENT_SCOPE_FULL
_DATA = pb.SNAPSHOT_CONTENT_SCOPE_DATA


@dataclass(frozen=True)
class Known:
    """A snapshot as a record names it, and as the store has it."""

    snapshot: pb.ExternalSnapshot
    found: Examined


@dataclass(frozen=True)
class Target:
    """`snapshot`: None: the actor's beginning; `note`: for people."""

    snapshot: pb.ExternalSnapshot | None
    note: str


def last_good(newest: Known, previous: Known | None) -> Target:
    """The newest one has proved unusable as it is.

    If it is damaged, the one before it, as a whole; else its own files. If it is not, so that its memory is of
    another runsc, processor, template or root file system: that before only where its memory is of something
    else, for what is of the same would fail the same. What has no memory that counts gives its files.
    """
    why = newest.found.problem or "its memory cannot go on here"
    candidates = []
    if previous is not None and previous.found.whole and _may_differ(newest, previous):
        candidates.append((previous, previous.snapshot.content_scope))
    if newest.snapshot.content_scope == _FULL and newest.found.files_good:
        candidates.append((newest, _DATA))
    if previous is not None and previous.found.files_good:
        candidates.append((previous, _DATA))
    if not candidates:
        return Target(None, f"no snapshot of it is good ({why}): it is back at its beginning")
    known, scope = candidates[0]
    chosen = pb.ExternalSnapshot()
    chosen.CopyFrom(known.snapshot)
    chosen.content_scope = scope
    what = "memory and files" if scope == _FULL else "files, not memory,"
    which = "the same snapshot" if known is newest else "the snapshot before it"
    return Target(
        chosen, f"{why}: it is back at the {what} of {which}, taken {known.found.created}"
    )


def _may_differ(newest: Known, previous: Known) -> bool:
    """Whether what was wrong with the one need not be wrong with the other."""
    if not newest.found.whole or previous.snapshot.content_scope != _FULL:
        return not newest.found.whole or newest.snapshot.content_scope != _FULL
    return newest.found.needs != previous.found.needs or (
        newest.found.template_uid != previous.found.template_uid
    )
