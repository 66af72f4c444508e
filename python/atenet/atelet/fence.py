"""Makes sure that nothing of an actor runs on this node, without asking its worker.

An actor's processes have an account that nobody else has, and runsc's name its uid in their command
lines, so a worker that died, hangs or lies cannot keep them alive, and what is on disk is final.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator

from atenet.errors import AteError
from atenet.worker.sandbox import account_of
from atenet.worker.sandbox.account import is_process_of, processes_of
from atenet.worker.sandbox.freezer import thaw_group_of
from atenet.worker.sandbox.gvisor.runsc import processes as runsc_processes

__all__ = ["FenceError", "fence"]

_DEADLINE_SECONDS = 5.0


class FenceError(AteError):
    """The actor's processes do not die."""


def fence(actor_uid: str) -> int:
    """Kills every process of the actor and waits for its end; blocks. Returns how many."""
    account = account_of(actor_uid)
    deadline = time.monotonic() + _DEADLINE_SECONDS
    killed = 0
    # Again until a look finds none: one may be started while we kill the others.
    while processes := [*processes_of(account), *_of_runsc(actor_uid)]:
        for pid in processes:
            killed += _kill(pid, actor_uid, account, deadline)
        if time.monotonic() > deadline:
            raise FenceError(f"processes of actor {actor_uid} do not die: {processes}")
    return killed


def _of_runsc(actor_uid: str) -> Iterator[int]:
    return runsc_processes(lambda words: any(w.startswith(f"{actor_uid}.") for w in words))


def _kill(pid: int, actor_uid: str, account: int, deadline: float) -> int:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    try:
        # Asked again now that the number cannot change hands.
        if not is_process_of(pid, account) and pid not in _of_runsc(actor_uid):
            return 0
        thaw_group_of(pid)
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        return 1
    except ProcessLookupError:
        return 0
    finally:
        os.close(descriptor)
