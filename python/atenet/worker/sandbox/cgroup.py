"""One cgroup per activation that has limits, on version 1 (a tree per controller) and version 2."""

from __future__ import annotations

import errno
import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from atenet.errors import AteError
from atenet.worker.sandbox.limits import PROCESSES, Limits

__all__ = ["CGROUPS", "CONTROLLERS", "PARENT", "Cgroups", "LimitsUnavailableError", "remove_group"]

_log = logging.getLogger(__name__)

CGROUPS = Path("/sys/fs/cgroup")
PARENT = "atenet"
# What groups of version 2 hand on to those below them.
CONTROLLERS = "+memory +cpu +pids"
_PERIOD_MICROSECONDS = 100_000
_LEAST_QUOTA_MICROSECONDS = 1_000  # the kernel's
_REMOVE_SECONDS = 2.0
_RETRY_SECONDS = 0.002
_MAKE_ATTEMPTS = 10


class LimitsUnavailableError(AteError):
    """The template asks for limits that this node cannot enforce."""


class _Hierarchy(Protocol):
    def prepare(self) -> None:
        """Makes the parent of all groups. Raises OSError when groups cannot be made here."""

    def directories(self, name: str) -> list[Path]: ...

    def settings(self, name: str, limits: Limits) -> dict[Path, str]: ...


class Cgroups:
    """Groups are named after the activation's network, so `prefix` marks the worker's own."""

    def __init__(self, prefix: str, root: Path = CGROUPS) -> None:
        self._prefix = prefix
        separate = (root / "memory").is_dir()
        self._hierarchy: _Hierarchy = _Separate(root) if separate else _Unified(root)
        self._problem: str | None = None
        try:
            self._make("")
        except OSError as e:
            self._problem = str(e)
            _log.warning(
                "cgroups cannot be used: actors whose template limits cpu or memory will not start",
                extra={"error": self._problem},
            )

    def create(self, name: str, limits: Limits) -> None:
        """Nothing to do without limits. Raises LimitsUnavailableError if it is not possible."""
        if not limits:
            return
        try:
            if self._problem is not None:
                raise OSError(self._problem)
            self._make(name)
            for file, value in self._hierarchy.settings(name, limits).items():
                file.write_text(value)
        except OSError as e:
            self.remove(name)
            raise LimitsUnavailableError(
                f"template.resources cannot be enforced on this node: {e}",
                hint="leave resources out of the template, or run where cgroups are writable",
            ) from e

    def admit(self, name: str, pid: int, limits: Limits) -> None:
        """Moves the process, and with it all that it will start, into the group."""
        if limits:
            for directory in self._hierarchy.directories(name):
                (directory / "cgroup.procs").write_text(str(pid))

    def remove(self, name: str) -> None:
        """Repeatable."""
        for directory in self._hierarchy.directories(name):
            remove_group(directory)

    def clear(self) -> None:
        """Removes every group of this worker, and the parent when no other worker has any."""
        for parent in self._hierarchy.directories(""):
            # Another worker that ends at the same time may have removed the parent already.
            with suppress(FileNotFoundError):
                for directory in list(parent.glob(f"{self._prefix}*")):
                    if directory.is_dir():
                        remove_group(directory)
            with suppress(OSError):
                parent.rmdir()

    def _make(self, name: str) -> None:
        """The parent and the group ("": the parent alone).

        Another worker that ends may remove the parent, empty as it is, between our steps.
        """
        for attempts_left in reversed(range(_MAKE_ATTEMPTS)):
            try:
                self._hierarchy.prepare()
                for directory in self._hierarchy.directories(name):
                    directory.mkdir(exist_ok=True)
            except (FileNotFoundError, FileExistsError):  # gone, or gone while mkdir looked
                if not attempts_left:
                    raise
            else:
                return


class _Separate:
    """Version 1."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def prepare(self) -> None:
        for directory in self.directories(""):
            if not (directory.parent / "cgroup.procs").exists():
                raise FileNotFoundError(errno.ENOENT, "controller not mounted", directory.parent)
            directory.mkdir(exist_ok=True)

    def directories(self, name: str) -> list[Path]:
        return [self._root / kind / PARENT / name for kind in ("memory", "cpu", "pids")]

    def settings(self, name: str, limits: Limits) -> dict[Path, str]:
        memory, cpu, pids = self.directories(name)
        settings = {pids / "pids.max": str(PROCESSES)}
        if limits.cpu_milli:
            settings[cpu / "cpu.cfs_period_us"] = str(_PERIOD_MICROSECONDS)
            settings[cpu / "cpu.cfs_quota_us"] = str(_quota(limits))
        if limits.memory_bytes:
            settings[memory / "memory.limit_in_bytes"] = str(limits.memory_bytes)
            if (with_swap := memory / "memory.memsw.limit_in_bytes").exists():
                settings[with_swap] = str(limits.memory_bytes)
        return settings


class _Unified:
    """Version 2."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def prepare(self) -> None:
        parent = self._root / PARENT
        handed_on = parent / "cgroup.subtree_control"
        # The freezer, which needs no controller, may have made it.
        if handed_on.exists() and "memory" in handed_on.read_text():
            return
        self._delegate(self._root)
        parent.mkdir(exist_ok=True)
        self._delegate(parent)

    def directories(self, name: str) -> list[Path]:
        return [self._root / PARENT / name]

    def settings(self, name: str, limits: Limits) -> dict[Path, str]:
        (group,) = self.directories(name)
        settings = {group / "pids.max": str(PROCESSES)}
        if limits.cpu_milli:
            settings[group / "cpu.max"] = f"{_quota(limits)} {_PERIOD_MICROSECONDS}"
        if limits.memory_bytes:
            settings[group / "memory.max"] = str(limits.memory_bytes)
            settings[group / "memory.swap.max"] = "0"
        return settings

    @staticmethod
    def _delegate(directory: Path) -> None:
        (directory / "cgroup.subtree_control").write_text(CONTROLLERS)


def _quota(limits: Limits) -> int:
    return max(limits.cpu_milli * _PERIOD_MICROSECONDS // 1000, _LEAST_QUOTA_MICROSECONDS)


def remove_group(directory: Path) -> None:
    """Repeatable. A group stays busy for a moment after its last process died."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    pause = threading.Event()
    while True:
        try:
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError as e:
            if e.errno != errno.EBUSY or time.monotonic() > deadline:
                _log.warning(
                    "cannot remove a cgroup", extra={"path": str(directory), "error": str(e)}
                )
                return
            pause.wait(_RETRY_SECONDS)
        else:
            return
