"""One process of a bench: where it runs, what it uses, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Program", "free_port", "on_cores", "until"]

_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.01
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def until(holds: Callable[[], bool], what: str, limit: float = _START_SECONDS) -> None:
    """Waits for a condition. Raises RuntimeError naming `what` after `limit` seconds."""
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {limit:g} s")
        time.sleep(_POLL_SECONDS)  # noqa: TID251 - other programs' states tell nobody when they change


def free_port() -> int:
    """A loopback port for a program that cannot be told to pick one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def on_cores(cores: Collection[int]) -> list[str]:
    """What to put before a command so that it runs on these cores; the process stays the same.

    Before other work of the machine, where that is allowed: what a measure compares must not depend on who else runs.
    """
    first = ["nice", "-n", "-10"] if os.geteuid() == 0 else []
    return [*first, "taskset", "-c", ",".join(map(str, sorted(cores)))]


class Program:
    """Runs until the block ends; its output goes to `log`."""

    def __init__(
        self,
        name: str,
        command: Sequence[object],
        *,
        cores: Collection[int],
        log: Path,
        keep_log: bool = True,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [str(word) for word in command]
        with log.open("wb") if keep_log else Path("/dev/null").open("wb") as sink:
            self._process = subprocess.Popen(
                [str(word) for word in [*on_cores(cores), *command]],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready_when(self, holds: Callable[[], bool]) -> None:
        """Waits until `holds`. Raises RuntimeError with the log's end when the process ends first."""
        until(lambda: self._process.poll() is not None or holds(), f"{self.name} starts")
        if self._process.poll() is not None:
            raise RuntimeError(
                f"{self.name} ended with {self._process.returncode}:\n{self._said()}"
            )

    def listens_on(self, port: int, host: str = "127.0.0.1") -> None:
        """Waits until the port accepts."""
        self.ready_when(lambda: _accepts(host, port))

    def _said(self) -> str:
        said = self.log.read_text(errors="replace") if self.log.exists() else ""
        if not said:
            # Where a log of each request would cost too much there is none: what fails fails again.
            again = subprocess.run(
                self._command, check=False, capture_output=True, text=True, timeout=30
            )
            said = again.stdout + again.stderr
        return said[-2000:]

    @property
    def cpu_seconds(self) -> float:
        """User and system time of the process and its children so far."""
        return sum(_cpu_seconds(pid) for pid in self._family())

    @property
    def resident_kib(self) -> float:
        """Memory of its own and shared that is in RAM now."""
        return sum(_resident_kib(pid) for pid in self._family())

    def _family(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    def stop(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


def _accepts(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_kib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1024
