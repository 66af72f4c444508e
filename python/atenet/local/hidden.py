"""A command that has no way to a directory: not every process of a machine may see every key on it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["without"]

# By which it could undo that, or look into processes that see the real directory.
_LOST = (
    *("sys_admin", "sys_ptrace", "sys_chroot", "sys_module", "sys_rawio", "sys_boot"),
    *("mknod", "bpf", "perfmon", "dac_read_search"),
)
_SCRIPT = 'mount -t tmpfs -o mode=0700 none "$0" && exec setpriv --bounding-set={bounds} "$@"'


def without(directory: Path) -> tuple[str, ...]:
    """What to put before a command: it sees another, empty directory there, and cannot change that. Needs root."""
    bounds = ",".join(f"-{capability}" for capability in _LOST)
    unshare = ("unshare", "--mount", "--propagation", "private")
    return (*unshare, "sh", "-c", _SCRIPT.format(bounds=bounds), str(directory))
