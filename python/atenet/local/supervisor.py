"""The process that runs all others: starts them together, keeps them running, stops them in order."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.local import conversation, egress_config
from atenet.local.child import Child, ChildState
from atenet.local.credentials import issue, renew_forever
from atenet.local.files import write_atomically
from atenet.local.layout import Layout
from atenet.local.ports import settle
from atenet.local.preflight import check_machine, prepare_home, search_path
from atenet.local.processes import ProcessSpec, plan
from atenet.local.router_config import render
from atenet.local.sandbox import settle_sandbox
from atenet.local.settings import LocalSettings
from atenet.local.sweep import MARK, sweep
from atenet.snapshots.opening import check_reachable

__all__ = ["Supervisor"]

# By the process' name.
_WITH_STORE = ("ateapi", "atelet")

log = logging.getLogger(__name__)

Report = Callable[[dict[str, Any]], None]


class Supervisor:
    """One local system, from `run` to the end of `run`. Needs an event loop of its own."""

    def __init__(self, home: Path, settings: LocalSettings, report: Report) -> None:
        """`report` is called with what happens during start-up, one object at a time."""
        self.layout = Layout(home)
        self.settings = settings
        self._report = report
        self._children: list[Child] = []
        self._began = time.monotonic()
        self._ready_seconds: float | None = None
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._changed = asyncio.Event()
        self._lock: int | None = None
        self._talk = conversation.Listener()

    async def run(self) -> None:
        """Starts, serves until told to stop, stops. Raises AteError when it cannot start."""
        self._prepare()
        tasks = [asyncio.create_task(renew_forever(self.layout))]
        server = await self._talk.listen(self.layout.control_socket, self._answer)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        try:
            tasks += [asyncio.create_task(child.run()) for child in self._children]
            await self._start()
            await self._stopping.wait()
        finally:
            await self._stop()
            for task in tasks:
                task.cancel()
            await self._talk.finished()
            server.close()
            self._forget()

    def status(self) -> dict[str, Any]:
        """The whole system as it stands; also what is kept in run/supervisor.json."""
        return {
            "pid": os.getpid(),
            "home": str(self.layout.home),
            "system_id": self.layout.system_id,
            "since": self._since,
            "ready": self._ready_seconds is not None and not self._stopping.is_set(),
            "ready_seconds": self._ready_seconds,
            "settings": self.settings.as_json(),
            "processes": [child.describe() for child in self._children],
        }

    # ------------------------------------------------------------ start

    def _prepare(self) -> None:
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        check_machine()
        self.layout.check_length(self.settings.workers)
        prepare_home(self.layout)
        self._take_lock()
        left = sweep(self.layout)
        if left:
            log.warning("cleaned up after a crash", extra={"found": asdict(left)})
        self._forget()
        self.settings = settle_sandbox(settle(self.settings))
        if self.settings.snapshots is not None:
            check_reachable(self.settings.snapshots)
        credentials = issue(self.layout, self.settings)
        write_atomically(self.layout.router_config, render(self.layout, self.settings))
        write_atomically(
            self.layout.egress_config, egress_config.render(self.settings, credentials)
        )
        specs = plan(self.layout, self.settings, credentials)
        self._children = [self._child(spec) for spec in specs]
        self._keep_record()

    def _take_lock(self) -> None:
        """Held for life: the kernel lets go of it when we are gone, however we went."""
        self._lock = os.open(self.layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AteError(
                f"a system is already running on {self.layout.home}",
                hint="`ate status` shows it, `ate down` stops it; --home starts another beside it",
            ) from None

    def _child(self, spec: ProcessSpec) -> Child:
        return Child(
            spec,
            log_file=self.layout.log(spec.name),
            ready_file=self.layout.ready_file(spec.name),
            environment={
                **_environment_of(spec.name),
                "PATH": search_path(),
                "PYTHONUNBUFFERED": "1",
                MARK: self.layout.system_id,
            },
            changed=self._on_change,
        )

    async def _start(self) -> None:
        """Returns when all serve. Raises AteError with the last words of the first that ended."""
        while not all(child.state is ChildState.READY for child in self._children):
            ended = next((c for c in self._children if c.past.restarts), None)
            if ended is not None:
                raise _why(ended)
            if self._stopping.is_set():
                return
            await self._next_change()
        self._ready_seconds = round(time.monotonic() - self._began, 3)
        self._keep_record()
        self._report({"event": "ready", **self.status()})

    async def _next_change(self) -> None:
        change, stop = (asyncio.ensure_future(e.wait()) for e in (self._changed, self._stopping))
        _, pending = await asyncio.wait((change, stop), return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        self._changed.clear()

    def _on_change(self, child: Child) -> None:
        self._changed.set()
        self._keep_record()
        if self._ready_seconds is None:
            self._report({"event": "process", "name": child.spec.name, "state": str(child.state)})

    def _keep_record(self) -> None:
        write_atomically(self.layout.record, json.dumps(self.status(), indent=1))

    def _forget(self) -> None:
        for path in (self.layout.record, self.layout.control_socket):
            path.unlink(missing_ok=True)

    # ------------------------------------------------------------ stop

    async def _stop(self) -> None:
        """Rank by rank: the router drains while there is still something to drain to."""
        self._stopping.set()
        by_rank = sorted(self._children, key=lambda child: child.spec.stop_rank)
        for _, rank in itertools.groupby(by_rank, key=lambda child: child.spec.stop_rank):
            await asyncio.gather(*(child.stop() for child in rank))
        await asyncio.to_thread(sweep, self.layout)
        self._stopped.set()

    # ------------------------------------------------------------ conversation

    async def _answer(self, operation: str) -> AsyncIterator[dict[str, Any]]:
        if operation == "status":
            yield {**self.status(), "done": True}
        elif operation == "stop":
            self._stopping.set()
            while not self._stopped.is_set():
                left = [c.spec.name for c in self._children if c.state is not ChildState.STOPPED]
                yield {"event": "stopping", "left": left}
                await self._stopped_or_changed()
            yield {"event": "stopped", "done": True}
        else:
            yield {"error": f"unknown operation {operation!r}", "done": True}

    async def _stopped_or_changed(self) -> None:
        waits = [asyncio.ensure_future(e.wait()) for e in (self._changed, self._stopped)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=1.0)
        self._changed.clear()
        for task in waits:
            task.cancel()


def _why(child: Child) -> AteError:
    """`ateapi ended with 1 before it served: <its last words>`."""
    if (problem := child.problem) is not None:
        return AteError(f"cannot start {child.spec.name}: {problem.message}", hint=problem.hint)
    words = [_message(line) for line in child.last_words()]
    said = f":\n  {chr(10).join(words).replace(chr(10), chr(10) + '  ')}" if words else ""
    return AteError(
        f"{child.spec.name} ended with {child.last_exit} before the system was up{said}",
        hint=f"its log is {child.log_file}",
    )


def _message(line: str) -> str:
    """The text of a JSON log line; any other line as it is."""
    try:
        found = json.loads(line)
        return str(found["message"]) if isinstance(found, dict) else line
    except (ValueError, KeyError):
        return line


def _environment_of(process: str) -> dict[str, str]:
    """This process's own; the store's credentials are for those alone that speak to it."""
    store = process in _WITH_STORE
    return {k: v for k, v in os.environ.items() if store or not k.startswith("AWS_")}
