"""The node's own part of each cgroup hierarchy: what a machine of its own would have as the root."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
# What kubelet and runc account with on version 1; systemd's is where runc puts what has no controller.
CONTROLLERS = (
    *("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"),
    *("systemd", "unified"),
)
_REMOVE_SECONDS = 10.0


@dataclass(frozen=True)
class NodeCgroups:
    """`name`: of the group, in every hierarchy. On version 2 there is one hierarchy."""

    name: str

    @property
    def groups(self) -> list[Path]:
        if (_ROOT / "cgroup.controllers").exists():
            return [_ROOT / self.name]
        return [_ROOT / each / self.name for each in CONTROLLERS if (_ROOT / each).is_dir()]

    def make(self) -> None:
        for group in self.groups:
            group.mkdir()
            # A new set of processors is empty, and nobody can be in it.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists() and not (group / file).read_text().strip():
                    (group / file).write_text((group.parent / file).read_text())

    def enter(self) -> None:
        """This process, and with it all that it starts."""
        for group in self.groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> list[str]:
        """Once its processes are gone. What could not be removed."""
        deadline = time.monotonic() + _REMOVE_SECONDS
        while True:
            left = [str(group) for group in self.groups if not _removed(group)]
            if not left or time.monotonic() > deadline:
                return left
            threading.Event().wait(0.1)


def _removed(group: Path) -> bool:
    if not group.exists():
        return True
    for inner in sorted(group.rglob("*"), key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            if inner.is_dir():
                inner.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
