"""One supervised process: started by exec, watched until it serves, restarted when it ends, stopped."""

from __future__ import annotations

import asyncio
import enum
import json
import logging
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from atenet.errors import AteError, of_system
from atenet.local.processes import ProcessSpec
from atenet.local.restart import RestartState, after_exit, after_ready

__all__ = ["Child", "ChildState"]

log = logging.getLogger(__name__)

START_SECONDS = 60.0  # eight of them start at once, on a machine that may be busy
_LOOK_SECONDS = 0.01  # the ready file appears once in a process's life
_LOG_BYTES = 16 * 1024 * 1024


class ChildState(enum.StrEnum):
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"  # ended; started again after the delay
    FAILED = "failed"  # given up
    STOPPING = "stopping"
    STOPPED = "stopped"


class Child:
    """Runs `spec` again and again until told to stop or until it never gets ready."""

    def __init__(
        self,
        spec: ProcessSpec,
        *,
        log_file: Path,
        ready_file: Path,
        environment: Mapping[str, str],
        changed: Callable[[Child], None],
    ) -> None:
        self.spec = spec
        self.state = ChildState.STARTING
        self.past = RestartState()
        self.last_exit: int | None = None
        self.problem: AteError | None = None  # why it did not start, where its log cannot tell
        self.log_file = log_file
        self._ready_file = ready_file
        self._environment = dict(environment)
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0
        self._stop = asyncio.Event()
        self._reported: dict[str, str] = {}
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process else None

    def describe(self) -> dict[str, Any]:
        """What `ate status` shows."""
        return {
            "name": self.spec.name,
            "state": str(self.state),
            "pid": self.pid,
            "restarts": self.past.restarts,
            "last_exit": self.last_exit,
            "uptime_seconds": round(time.monotonic() - self._started, 1) if self.pid else None,
            "addresses": {**self.spec.addresses, **self._reported},
            "log": str(self.log_file),
        }

    async def run(self) -> None:
        """Returns when stopped or given up."""
        while not self._stop.is_set():
            was_ready = await self._live()
            if self._stop.is_set():
                break
            ran = time.monotonic() - self._started
            self.past, delay = after_exit(self.past, was_ready=was_ready, ran_seconds=ran)
            if delay is None:
                log.error("given up", extra={"child": self.spec.name, "exit": self.last_exit})
                self._enter(ChildState.FAILED)
                return
            self._enter(ChildState.WAITING)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stop.wait()
        self._enter(ChildState.STOPPED)

    async def stop(self) -> None:
        """SIGTERM, the time its spec allows, SIGKILL. Returns when the process is gone."""
        self._stop.set()
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._enter(ChildState.STOPPING)
        _signal(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(self.spec.stop_seconds):
                await process.wait()
        except TimeoutError:
            log.warning("killed, it did not stop", extra={"child": self.spec.name})
            _signal(process, signal.SIGKILL)
            await process.wait()

    def last_words(self, lines: int = 5) -> list[str]:
        """The end of what its last life has logged."""
        with suppress(OSError), self.log_file.open("rb") as file:
            file.seek(max(self._log_start, self.log_file.stat().st_size - 8192))
            return file.read().decode(errors="replace").splitlines()[-lines:]
        return []

    async def _live(self) -> bool:
        """One life, from exec to exit. Returns whether it got ready."""
        self._started = time.monotonic()
        try:
            self._ready_file.unlink(missing_ok=True)
            self._process = process = await self._spawn()
        except OSError as error:
            # Tried again as after an exit: a full disk may have room by then.
            self.problem = of_system(error)
            log.error("not started", extra={"child": self.spec.name, "error": self.problem.message})
            return False
        self.problem = None
        self._enter(ChildState.STARTING)
        watch = asyncio.create_task(self._watch_ready(process))
        self.last_exit = await process.wait()
        ready = watch.done() and not watch.cancelled() and watch.result()
        watch.cancel()
        if not self._stop.is_set():
            log.warning("process ended", extra={"child": self.spec.name, "exit": self.last_exit})
        return ready

    async def _spawn(self) -> asyncio.subprocess.Process:
        _rotate(self.log_file)
        with self.log_file.open("ab") as output:
            self._log_start = output.tell()
            return await asyncio.create_subprocess_exec(
                *_dying_with_us(),
                *self.spec.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,  # a terminal's ^C is for the supervisor to pass on, in order
            )

    async def _watch_ready(self, process: asyncio.subprocess.Process) -> bool:
        deadline = self._started + START_SECONDS
        while not self._ready_file.exists():
            if time.monotonic() > deadline:
                log.error("not ready in time", extra={"child": self.spec.name})
                self.problem = AteError(
                    f"it does not serve after {START_SECONDS:g} s",
                    hint=f"its log is {self.log_file}",
                )
                _signal(process, signal.SIGKILL)
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        self._reported = self._read_reported()
        self.past = after_ready(self.past)
        self._enter(ChildState.READY)
        return True

    def _read_reported(self) -> dict[str, str]:
        if not self.spec.reported:
            return {}
        said = json.loads(self._ready_file.read_text())
        return {what: str(said[what]) for what in self.spec.reported}

    def _enter(self, state: ChildState) -> None:
        self.state = state
        self._changed(self)


def _dying_with_us() -> list[str]:
    """The kernel tells a child to stop when the supervisor is gone, however it went."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def _rotate(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.stat().st_size > _LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
