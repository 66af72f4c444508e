"""Where a worker in a container makes its actors' cgroups: below its own, whose limits then hold for them."""

from __future__ import annotations

import errno
import logging
from contextlib import suppress
from pathlib import Path

from atenet.worker.sandbox.cgroup import CGROUPS, CONTROLLERS

__all__ = ["own_group"]

_log = logging.getLogger(__name__)

_MEMBERSHIP = Path("/proc/self/cgroup")
# Its processes' place: version 2 has no group with both processes and limited groups in it.
_LEAF = "atenet-worker"
# What is started in the container meanwhile (a probe's command) gets in the way for a moment.
_ATTEMPTS = 20


def own_group(root: Path = CGROUPS, membership: Path = _MEMBERSHIP) -> Path:
    """The directory to make groups below; it has controllers to hand on, and no process of its own.

    On version 1 that is what is mounted: a container is shown its own groups alone. On version 2 a
    privileged one is shown the node's, and groups at their root would be outside all limits of the pod.
    """
    if not (root / "cgroup.controllers").exists():
        return root
    path = next(
        (line[3:] for line in membership.read_text().splitlines() if line.startswith("0::")), "/"
    )
    # Started again without a new container it is in the leaf already.
    own = root / path.strip("/").removesuffix(_LEAF)
    try:
        _hand_on(own)
    except OSError as e:
        _log.warning(
            "the worker's own cgroup cannot be divided", extra={"path": str(own), "error": str(e)}
        )
    return own


def _hand_on(own: Path) -> None:
    leaf = own / _LEAF
    leaf.mkdir(exist_ok=True)
    for attempts_left in reversed(range(_ATTEMPTS)):
        for pid in (own / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(pid)
        try:
            (own / "cgroup.subtree_control").write_text(CONTROLLERS)
        except OSError as e:
            if e.errno != errno.EBUSY or not attempts_left:
                raise
        else:
            return
