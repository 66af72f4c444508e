"""A local system as seen from outside: start it detached, ask it, stop it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.local import conversation
from atenet.local.files import read_record
from atenet.local.layout import Layout
from atenet.local.preflight import check_machine, prepare_home
from atenet.local.settings import LocalSettings
from atenet.local.sweep import MARK

__all__ = ["LocalSystem"]

Event = dict[str, Any]


class LocalSystem:
    """The system of one state directory."""

    def __init__(self, home: Path) -> None:
        self.layout = Layout(home)

    def start(self, settings: LocalSettings) -> Iterator[Event]:
        """Starts the supervisor in the background; yields what happens until all serve.

        The last event is `ready`. Leaving early stops the system. Raises AteError.
        """
        check_machine()
        prepare_home(self.layout)
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as events:
            try:
                supervisor = self._spawn(settings, writing)
            finally:
                os.close(writing)
            ready = False
            try:
                for event in self._until_ready(events):
                    ready = event["event"] == "ready"
                    yield event
            finally:
                if not ready:
                    supervisor.terminate()
                    supervisor.wait()

    def status(self) -> dict[str, Any] | None:
        """What the supervisor says of itself; None when none runs."""
        try:
            return next(conversation.ask(self.layout.control_socket, "status"))
        except ConnectionError:
            return None

    def record(self) -> dict[str, Any] | None:
        """What the supervisor last wrote down; there after a crash too."""
        return read_record(self.layout.record)

    def stop(self) -> Iterator[Event]:
        """Stops the system and yields what happens; cleans up when its supervisor is gone.

        The last event is `stopped` (it ran), `swept` (only left-overs, now removed; `found` says
        what) or `idle` (nothing was there).
        """
        with _Watched(self.status()) as supervisor:
            try:
                yield from conversation.ask(self.layout.control_socket, "stop")
                supervisor.wait()
            except (ConnectionError, AteError):
                yield self._sweep()

    def _sweep(self) -> Event:
        from atenet.local.sweep import sweep

        crashed = self.layout.record.exists()
        found = sweep(self.layout)
        for path in (self.layout.record, self.layout.control_socket):
            path.unlink(missing_ok=True)
        return {"event": "swept" if crashed or found else "idle", "found": asdict(found)}

    def _spawn(self, settings: LocalSettings, report: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "atenet.local", "--home", str(self.layout.home)]
        words += ["--settings", json.dumps(settings.as_json()), "--report-fd", str(report)]
        with self.layout.log("supervisor").open("ab") as log:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[report],
                start_new_session=True,
                env={**os.environ, MARK: self.layout.system_id},
            )

    def _until_ready(self, events: Any) -> Iterator[Event]:
        for line in events:
            event: Event = json.loads(line)
            if event["event"] == "error":
                raise AteError(event["message"], hint=event["hint"])
            yield event
            if event["event"] == "ready":
                return
        raise AteError(
            "the supervisor ended before the system was up",
            hint=f"its log is {self.layout.log('supervisor')}",
        )


class _Watched:
    """The supervisor's process, held by a descriptor so that its pid cannot become another's."""

    def __init__(self, status: Event | None) -> None:
        self._descriptor: int | None = None
        if status is not None:
            with suppress(ProcessLookupError):
                self._descriptor = os.pidfd_open(status["pid"])

    def wait(self, limit_seconds: float = 10.0) -> None:
        """Returns when it has ended, which is a moment after its last word."""
        if self._descriptor is not None:
            select.select([self._descriptor], [], [], limit_seconds)

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
