"""Finds and removes what a local system left on the machine: processes and network namespaces.

Needs no record, so that it works after any crash: processes carry the system's id in their
environment, namespaces in their name. What does not carry it is not ours and is left alone.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from atenet.gvisor import STATES, owned
from atenet.local.layout import Layout

__all__ = [
    "MARK",
    "Swept",
    "find_groups",
    "find_namespaces",
    "find_processes",
    "find_sandboxes",
    "sweep",
]

# The variable that marks our processes; its value is Layout.system_id.
MARK = "ATE_SYSTEM"


@dataclass
class Swept:
    """What was found and removed."""

    processes: list[int] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.processes or self.namespaces)


def find_namespaces(family: str) -> list[str]:
    """The network namespaces of this system's workers."""
    return sorted(entry.name for entry in Path("/run/netns").glob(f"{family}*"))


def find_sandboxes(family: str) -> list[str]:
    """Directories where this system's workers keep the state of gVisor's sandboxes."""
    return sorted(str(e) for e in STATES.glob(f"{family}*")) if owned(STATES) else []


def find_groups(family: str) -> list[str]:
    """The cgroups of this system's actors, on version 1 (a tree for each controller) and 2."""
    tree = Path("/sys/fs/cgroup")
    return sorted(str(f) for kind in ("", "*/") for f in tree.glob(f"{kind}atenet/{family}*"))


def _clear_networks(family: str) -> list[str]:
    """Namespaces (with what still runs in them) and cgroups of all workers; returns the former."""
    sandboxes = find_sandboxes(family)
    if sandboxes:
        from atenet.worker.sandbox.gvisor.runsc import clear_states

        clear_states(family)
    found = find_namespaces(family)
    if found or find_groups(family):
        # Late: after an orderly stop there is nothing, and then this costs a start nothing.
        from atenet.worker.network import clear_leftovers
        from atenet.worker.sandbox import Cgroups

        clear_leftovers(family)
        Cgroups(family).clear()
    return found


def find_processes(system_id: str) -> list[int]:
    """The living processes of this system, this process excepted."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in pids if pid != os.getpid() and _is_marked(pid, system_id)]


def _is_marked(pid: int, system_id: str) -> bool:
    with suppress(OSError):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return f"{MARK}={system_id}".encode() in variables
    return False


def sweep(layout: Layout, *, grace_seconds: float = 5.0) -> Swept:
    """Stops every process of this system and removes its namespaces. Blocks; idempotent."""
    swept = Swept()
    # Twice: a process may be started between the look and the kill.
    for _ in range(2):
        processes = find_processes(layout.system_id)
        if not processes:
            break
        swept.processes += processes
        _end(processes, grace_seconds, lambda pid: _is_marked(pid, layout.system_id))
    swept.namespaces = _clear_networks(layout.net_family)
    return swept


def _end(pids: Iterable[int], grace_seconds: float, ours: Callable[[int], bool]) -> None:
    """SIGTERM, the grace, SIGKILL; through descriptors, so that a reused pid is never hit."""
    handles = [fd for pid in pids if (fd := _open(pid, ours)) is not None]
    try:
        if grace_seconds:
            _send(handles, signal.SIGTERM)
        rest = _wait(handles, grace_seconds)
        _send(rest, signal.SIGKILL)
        _wait(rest, 5.0)
    finally:
        for handle in handles:
            os.close(handle)


def _open(pid: int, ours: Callable[[int], bool]) -> int | None:
    """The process's descriptor, if it is still ours now that the pid cannot change hands."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if ours(pid):
        return handle
    os.close(handle)
    return None


def _send(handles: Iterable[int], number: signal.Signals) -> None:
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)


def _wait(handles: list[int], seconds: float) -> list[int]:
    """Those that still live after so long. A process's descriptor is readable once it ended."""
    deadline, rest = time.monotonic() + seconds, list(handles)
    while rest:
        ended, _, _ = select.select(rest, [], [], max(0.0, deadline - time.monotonic()))
        if not ended:
            break
        rest = [handle for handle in rest if handle not in ended]
    return rest
