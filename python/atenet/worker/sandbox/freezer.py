"""Freezes an activation's processes where they are, and lets them go on.

A group of the cgroup freezer, version 2 where it is mounted (alone or beside version 1), else
version 1, is made when it is needed and the actor's processes are moved into it. Where groups
cannot be written nothing can be frozen: signals are no substitute, since a stopped process can be
continued by its siblings, and its parent sees that it was stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from atenet.errors import AteError
from atenet.worker.sandbox.cgroup import CGROUPS, PARENT, remove_group

__all__ = ["FreezeUnavailableError", "Freezer", "thaw_group_of"]

_DEADLINE_SECONDS = 5.0
_POLL_SECONDS = 0.002
_MAKE_ATTEMPTS = 10


class FreezeUnavailableError(AteError):
    """This node cannot freeze the actor; it runs on."""


class Freezer:
    """Groups are named after the activation's network, so `prefix` marks the worker's own."""

    def __init__(self, prefix: str, root: Path = CGROUPS) -> None:
        self._prefix = prefix
        self._hierarchy = _hierarchy(root)

    def check(self, name: str) -> None:
        """Makes the group. Raises FreezeUnavailableError where that, or freezing, is impossible."""
        if self._hierarchy is None:
            raise _unavailable("no cgroup freezer is mounted")
        group = self._group(name)
        for attempts_left in reversed(range(_MAKE_ATTEMPTS)):
            try:
                group.mkdir(parents=True, exist_ok=True)
                self._switch(group).read_text()
            except OSError as e:
                # Another worker that ends may remove the parent, empty as it is, between our steps.
                if not attempts_left or not isinstance(e, FileNotFoundError):
                    raise _unavailable(str(e)) from e
            else:
                return

    def freeze(self, name: str, processes: Callable[[], Iterable[int]]) -> None:
        """Blocks until every one of the processes, and all they started meanwhile, is frozen.

        Raises FreezeUnavailableError, and then none is.
        """
        self.check(name)
        group = self._group(name)
        try:
            # First the group: whoever comes in is frozen at once and starts nothing any more.
            self._switch(group).write_text(self._words[1])
            deadline = time.monotonic() + _DEADLINE_SECONDS
            while self._gather(group, processes) or not self._is_frozen(group):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not frozen in {_DEADLINE_SECONDS:.0f} s")
                threading.Event().wait(_POLL_SECONDS)
        except OSError as e:
            self.thaw(name)
            raise _unavailable(str(e)) from e

    def thaw(self, name: str) -> None:
        """Repeatable; nothing happens to what is not frozen."""
        if self._hierarchy is not None:
            with suppress(FileNotFoundError):
                self._switch(self._group(name)).write_text(self._words[0])

    def remove(self, name: str) -> None:
        """Repeatable. Its processes are gone."""
        if self._hierarchy is not None:
            remove_group(self._group(name))

    def clear(self) -> None:
        """Thaws, so that what was killed can die, and removes every group of this worker."""
        if self._hierarchy is None:
            return
        # Another worker that ends at the same time may have removed the parent already.
        with suppress(FileNotFoundError):
            for group in list((self._hierarchy / PARENT).glob(f"{self._prefix}*")):
                self.thaw(group.name)
                remove_group(group)
        with suppress(OSError):
            (self._hierarchy / PARENT).rmdir()

    def _group(self, name: str) -> Path:
        assert self._hierarchy is not None
        return self._hierarchy / PARENT / name

    @property
    def _unified(self) -> bool:
        assert self._hierarchy is not None
        return _is_unified(self._hierarchy)

    @property
    def _words(self) -> tuple[str, str]:
        return ("0", "1") if self._unified else ("THAWED", "FROZEN")

    def _switch(self, group: Path) -> Path:
        return group / ("cgroup.freeze" if self._unified else "freezer.state")

    def _is_frozen(self, group: Path) -> bool:
        if self._unified:
            return "frozen 1" in (group / "cgroup.events").read_text()
        return self._switch(group).read_text().strip() == "FROZEN"

    @staticmethod
    def _gather(group: Path, processes: Callable[[], Iterable[int]]) -> bool:
        """Moves in those that are outside; whether there were any."""
        members = group / "cgroup.procs"
        inside = {int(line) for line in members.read_text().split()}
        outside = [pid for pid in processes() if pid not in inside]
        for pid in outside:
            with suppress(ProcessLookupError):
                members.write_text(str(pid))
        return bool(outside)


def thaw_group_of(pid: int, root: Path = CGROUPS) -> None:
    """So that a kill takes effect: version 1 keeps even a killed process frozen."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, kind, path = line.split(":", 2)
            # In a container the path may begin above what is mounted here.
            _, ours, name = path.partition(f"/{PARENT}/")
            if kind == "freezer" and ours:
                (root / "freezer" / PARENT / name / "freezer.state").write_text("THAWED")


def _hierarchy(root: Path) -> Path | None:
    for place in (root, root / "unified"):
        if _is_unified(place):
            return place
    return root / "freezer" if (root / "freezer").is_dir() else None


def _is_unified(place: Path) -> bool:
    return (place / "cgroup.controllers").exists()


def _unavailable(why: str) -> FreezeUnavailableError:
    return FreezeUnavailableError(
        f"actors cannot be frozen on this node: {why}",
        hint="pausing needs a cgroup freezer that the worker may write to; suspend works without",
    )
