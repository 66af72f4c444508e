"""Clears what an interrupted run of the same worker left: processes first, then namespaces."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from atenet.errors import AteError
from atenet.worker.network import netns

__all__ = ["clear_leftovers", "hold_prefix"]

_log = logging.getLogger(__name__)
_DEADLINE_SECONDS = 5.0


@contextmanager
def hold_prefix(prefix: str) -> Iterator[None]:
    """Whoever holds it may clear what is left under it: no living worker uses it.

    The name of an abstract socket needs no file and is free again when its process ends. Raises
    AteError when another worker holds the prefix.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as held:
        try:
            held.bind(f"\0atenet/net-prefix/{prefix}")
        except OSError as e:
            raise AteError(
                f"--net-prefix {prefix!r} is used by another worker of this machine",
                hint="give every worker a prefix of its own",
            ) from e
        yield


def clear_leftovers(prefix: str) -> list[str]:
    """Kills what still runs in namespaces below `prefix` and removes them; returns their names.

    Only names with this prefix are touched, so other workers of the machine are safe. Blocks.
    """
    names = netns.names(prefix)
    if not names:
        return []
    killed = _kill(netns.processes_inside(names))
    for name in names:
        netns.remove(name)
    _log.warning(
        "cleared what an interrupted run left",
        extra={"namespaces": names, "killed_processes": killed},
    )
    return names


def _kill(processes: Iterable[int]) -> list[int]:
    """SIGKILL, and wait until they are gone, so that nobody writes to a durable directory later."""
    waiting: dict[int, int] = {}
    for pid in processes:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            waiting[descriptor] = pid
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    killed = list(waiting.values())
    deadline = time.monotonic() + _DEADLINE_SECONDS
    try:
        for descriptor, pid in waiting.items():
            left = max(0.0, deadline - time.monotonic())
            if not select.select([descriptor], [], [], left)[0]:
                _log.error("a process does not die", extra={"pid": pid})
    finally:
        for descriptor in waiting:
            os.close(descriptor)
    return killed
