"""What every process of the system does around its own work: logs, signals, readiness, errors."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from atenet import logs
from atenet.errors import AteError, of_system

__all__ = ["Stop", "announce_ready", "only_one", "run"]

_log = logging.getLogger(__name__)

Stop = asyncio.Event


def run(process: str, level: str, serve: Callable[[Stop], Awaitable[None]]) -> None:
    """Runs `serve(stop)` until it returns; SIGTERM and SIGINT set `stop`.

    An AteError, or what the operating system refuses, ends the process with two lines on stderr and
    exit code 1.
    """
    try:
        logs.configure(process, level)
    except ValueError as e:
        _fail(AteError(f"--log-level: {e}"))
    try:
        asyncio.run(_serve(serve))
    except OSError as e:
        _log.exception("cannot run")
        _fail(of_system(e))
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


@contextmanager
def only_one(directory: Path, flag: str) -> Iterator[None]:
    """Makes the directory, for the owner alone, and holds it: a second process is refused.

    The kernel lets go of it when the process ends, however it ends. Raises AteError naming `flag`.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as e:
        raise AteError(f"{flag} {directory}: {e.strerror}") from e
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AteError(
            f"{flag} {directory} is used by another process",
            hint="stop that one, or choose another directory",
        ) from None
    finally:
        os.close(descriptor)


async def _serve(serve: Callable[[Stop], Awaitable[None]]) -> None:
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(stop)


def _fail(error: AteError) -> NoReturn:
    print(f"error: {error}", file=sys.stderr)  # noqa: T201 - for the person who started it
    sys.exit(1)
