"""A testing aid: dies with SIGKILL at one named point of a workflow.

`ATENET_STOP_AT=resume.claimed ateapi serve ...` proves what a kill at that point leaves behind.
It is read once, at import; without it every point costs one comparison.
"""

from __future__ import annotations

import os
import signal

__all__ = ["POINTS", "reached"]

POINTS = (
    "resume.claimed",  # RESUMING stored, the node not asked
    "resume.started",  # the node has started it, RUNNING not stored
    "resume.running",  # RUNNING stored, the caller not answered
    "suspend.begun",  # SUSPENDING stored, the node not asked
    "suspend.stored",  # the node has the snapshot, SUSPENDED not stored
    "suspend.done",  # SUSPENDED stored, the caller not answered
    "pause.begun",  # PAUSING stored, the node not asked
    "pause.frozen",  # the node has frozen it, PAUSED not stored
    "pause.done",  # PAUSED stored, the caller not answered
    "thaw.begun",  # RESUMING stored for a frozen actor, the node not asked
    "thaw.thawed",  # the node has thawed it, RUNNING not stored
    "thaw.running",  # RUNNING stored, the caller not answered
    "revert.begun",  # REVERTING stored, the node not asked
    "revert.terminated",  # the node has let go, SUSPENDED not stored
    "revert.done",  # SUSPENDED stored, the caller not answered
    "reclaim.suspended",  # another actor's slot has become this one's, the node not asked
    "delete.begun",  # DELETING stored, the node not asked
    "delete.terminated",  # the node has let go, the record is there
    "delete.done",  # the record is gone, snapshots not swept
)

_stop_at = os.environ.get("ATENET_STOP_AT")


def reached(point: str) -> None:
    """Marks a point; kills this process if it is the chosen one."""
    if point == _stop_at:
        os.kill(os.getpid(), signal.SIGKILL)
