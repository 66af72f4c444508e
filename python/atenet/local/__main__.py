"""The supervisor's process: `python -m atenet.local --home DIR --settings JSON --report-fd N`.

`ate up` starts it (atenet.local.system); people have no use for it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import click

from atenet import logs
from atenet.errors import AteError, of_system
from atenet.local.settings import LocalSettings
from atenet.local.supervisor import Supervisor


@click.command()
@click.option("--home", type=click.Path(path_type=Path), required=True, help="State directory.")
@click.option("--settings", required=True, help="LocalSettings as a JSON object.")
@click.option("--report-fd", type=int, required=True, help="Where start-up events go.")
def main(home: Path, settings: str, report_fd: int) -> None:
    """Runs one local system until it is told to stop."""
    report = _Report(report_fd)
    try:
        wanted = LocalSettings.from_json(json.loads(settings))
        logs.configure("supervisor", wanted.log_level)
        asyncio.run(Supervisor(home, wanted, report).run())
    except (AteError, OSError) as error:
        told = error if isinstance(error, AteError) else of_system(error)
        if told is not error:
            logging.getLogger(__name__).exception("cannot run")
        report({"event": "error", "message": told.message, "hint": told.hint})
        sys.exit(1)


class _Report:
    """Lines for whoever started us. They may have gone; the system runs on all the same."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        os.set_inheritable(descriptor, False)

    def __call__(self, event: dict[str, Any]) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, json.dumps(event).encode() + b"\n")
        except BrokenPipeError:
            event = {"event": "ready"}
        if event["event"] in ("ready", "error"):
            os.close(self._descriptor)
            self._descriptor = None


if __name__ == "__main__":
    main()
