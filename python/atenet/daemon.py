"""What every process of the system does around its own work: logs, signals, readiness, errors."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from atenet import logs
from atenet.errors import AteError

__all__ = ["Stop", "announce_ready", "run"]

_log = logging.getLogger(__name__)

Stop = asyncio.Event


def run(process: str, level: str, serve: Callable[[Stop], Awaitable[None]]) -> None:
    """Runs `serve(stop)` until it returns; SIGTERM and SIGINT set `stop`.

    An AteError ends the process with two lines on stderr and exit code 1.
    """
    try:
        logs.configure(process, level)
        asyncio.run(_serve(serve))
    except ValueError as e:
        _fail(AteError(f"--log-level: {e}"))
    except AteError as e:
        _log.error("cannot run", extra={"error": e.message, "hint": e.hint})
        _fail(e)


def announce_ready(file: Path | None, addresses: Mapping[str, Any]) -> None:
    """Makes the file in one step; whoever waits for it never sees half of it."""
    _log.info("ready", extra={"addresses": addresses})
    if file is None:
        return
    partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(dict(addresses)))
        partial.replace(file)
    except OSError as e:
        raise AteError(f"--ready-file {file}: {e.strerror}") from e


async def _serve(serve: Callable[[Stop], Awaitable[None]]) -> None:
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(stop)


def _fail(error: AteError) -> None:
    print(f"error: {error}", file=sys.stderr)  # noqa: T201 - for the person who started it
    sys.exit(1)
