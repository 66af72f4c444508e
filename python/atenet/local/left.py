"""What a stopped system still has on the machine: should be nothing. Only looks."""

from __future__ import annotations

from pathlib import Path

from atenet.local.layout import Layout
from atenet.local.sweep import find_groups, find_namespaces, find_processes, find_sandboxes

__all__ = ["left_behind"]


def left_behind(layout: Layout) -> list[str]:
    """Processes, namespaces, sandboxes' state, cgroups and mounts, a line of words each.

    Actors' rules are in their namespaces and go with them; the machine's own have none of ours.
    """
    family = layout.net_family
    home = str(layout.home)
    return [
        *(f"process {pid}" for pid in find_processes(layout.system_id)),
        *(f"process {pid} of an actor" for pid in _inside(home)),
        *(f"namespace {name}" for name in find_namespaces(family)),
        *(f"sandboxes {path}" for path in find_sandboxes(family)),
        *(f"cgroup {path}" for path in find_groups(family)),
        *(f"mount {line}" for line in _lines(Path("/proc/self/mountinfo")) if home in line),
    ]


def _inside(home: str) -> list[int]:
    """Processes that have a part of `home` mounted in a mount namespace of their own, as actors do."""
    own = _namespace(Path("/proc/self"))
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and _namespace(entry) not in (own, None)
        and any(home in line for line in _lines(entry / "mountinfo"))
    ]


def _namespace(process: Path) -> Path | None:
    try:
        return (process / "ns/mnt").readlink()
    except OSError:
        return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []
