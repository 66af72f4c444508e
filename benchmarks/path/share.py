"""A part of a core for what is measured: where the generator and the origin cost more than what they measure, only a
bound on the latter makes it what limits. The kernel's own (CPU bandwidth control), the same for either side.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["share"]

_ROOT = Path("/sys/fs/cgroup")
# Short, so that nothing runs dry and nothing fills up meanwhile.
_PERIOD_US = 20_000


@contextmanager
def share(pids: list[int], cores: float, root: Path = _ROOT) -> Iterator[None]:
    """These processes, together with what they start, get so much of a core while the block lasts.

    Raises RuntimeError where groups cannot be made.
    """
    quota = int(cores * _PERIOD_US)
    separate = (root / "cpu").is_dir()
    top = root / "cpu" if separate else root
    group = top / f"atenet-bench-{os.getpid()}"
    try:
        if separate:
            group.mkdir()
            settings = {"cpu.cfs_period_us": _PERIOD_US, "cpu.cfs_quota_us": quota}
            for file, value in settings.items():
                (group / file).write_text(str(value))
        else:
            (root / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
    except OSError as e:
        raise RuntimeError(f"no group with a part of a core: {e}; are cgroups writable?") from e
    try:
        _move(pids, group)
        yield
    finally:
        _move([int(pid) for pid in (group / "cgroup.procs").read_text().split()], top)
        group.rmdir()


def _move(pids: list[int], group: Path) -> None:
    for pid in pids:
        (group / "cgroup.procs").write_text(str(pid))
