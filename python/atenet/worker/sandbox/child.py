"""One bubblewrap process: started behind a gate, watched without a thread, stopped for certain."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from atenet.errors import AteError

__all__ = ["Child", "Started", "start"]

_REPORT_SECONDS = 5.0
_KILL_SECONDS = 10.0
# Why is in its output.
_NOT_STARTED = "bubblewrap could not start the sandbox"


@dataclass(frozen=True)
class Started:
    """`outer`: bubblewrap on the host; `init`: process 1 of the sandbox; `pidfd`: of init.

    `status` is bubblewrap's to write to: it would die of a closed pipe before it could exit with
    the command's status.
    """

    outer: subprocess.Popen[bytes]
    init: int
    pidfd: int
    status: int


def start(
    command: Callable[[int, int], list[str]],
    inherited: Iterable[int],
    output: int,
    before_opening: Callable[[int], None],
) -> Started:
    """Starts it and blocks until the sandbox exists (some ms).

    `command` is given the descriptors of the status pipe and of the gate; `before_opening` is
    given init's pid while nothing of the actor has run yet. The thread that calls this must live
    as long as the actor may: the kernel kills bubblewrap when its parent *thread* ends.
    """
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    gate_read, gate_write = os.pipe2(os.O_CLOEXEC)
    try:
        outer = subprocess.Popen(
            command(status_write, gate_read),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(*inherited, status_write, gate_read),
            env={"PATH": os.environ.get("PATH", os.defpath)},
            cwd="/",
        )
        os.close(status_write)
        status_write = -1
        try:
            return _open_gate(outer, status_read, gate_write, before_opening)
        except BaseException:
            outer.kill()
            outer.wait()
            raise
    except BaseException:
        os.close(status_read)
        raise
    finally:
        for descriptor in (status_write, gate_read, gate_write):
            if descriptor >= 0:
                os.close(descriptor)


def _open_gate(
    outer: subprocess.Popen[bytes], status: int, gate: int, before_opening: Callable[[int], None]
) -> Started:
    init = _read_init(status)
    try:
        pidfd = os.pidfd_open(init)
    except ProcessLookupError:
        raise AteError(_NOT_STARTED) from None
    try:
        before_opening(init)
        os.write(gate, b"\n")
    except BaseException as e:
        # A closed gate is an open one, so it must be dead before the gate goes.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [], _KILL_SECONDS)
        os.close(pidfd)
        if isinstance(e, ProcessLookupError):
            raise AteError(_NOT_STARTED) from None
        raise
    return Started(outer, init, pidfd, status)


def _read_init(status: int) -> int:
    """bubblewrap's first line, which it writes in pieces, names process 1."""
    deadline = time.monotonic() + _REPORT_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([status], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise AteError(f"bubblewrap did not start the sandbox in {_REPORT_SECONDS:.0f} s")
        piece = os.read(status, 1)
        if not piece:
            raise AteError(_NOT_STARTED)
        line += piece
    return int(json.loads(line)["child-pid"])


class Child:
    """A started sandbox as the event loop sees it."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self._outer = os.pidfd_open(started.outer.pid)
        loop = asyncio.get_running_loop()
        # Exit status of the command (128 + signal when killed), once no process is left.
        self.exited: asyncio.Future[int] = loop.create_future()
        loop.add_reader(started.pidfd, self._init_gone)

    def terminate(self) -> None:
        """Asks the actor's command (not bubblewrap) to stop."""
        for pid in _children(self._started.init)[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kills process 1, and with it, by the kernel's hand, every process of the sandbox."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._started.pidfd, signal.SIGKILL)

    async def stop(self, wait: float) -> None:
        """SIGTERM, `wait` seconds, SIGKILL. When it returns no process is left."""
        if wait > 0 and not self.exited.done():
            self.terminate()
            await asyncio.wait([self.exited], timeout=wait)
        if not self.exited.done():
            self.kill()
            async with asyncio.timeout(_KILL_SECONDS):
                await asyncio.shield(self.exited)

    def _init_gone(self) -> None:
        """The kernel ends process 1 only after every other process of its namespace."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._started.pidfd)
        os.close(self._started.pidfd)
        loop.add_reader(self._outer, self._outer_gone)

    def _outer_gone(self) -> None:
        asyncio.get_running_loop().remove_reader(self._outer)
        os.close(self._outer)
        os.close(self._started.status)
        status = self._started.outer.wait()
        self.exited.set_result(status if status >= 0 else 128 - status)


def _children(pid: int) -> Sequence[int]:
    """Oldest first."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return ()
    return [int(word) for word in text.split()]
