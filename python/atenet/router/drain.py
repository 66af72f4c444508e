"""Leaving in order: not ready, serve on, drain Envoy, say that it is done."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from atenet.errors import AteError

__all__ = ["Carrier", "clear_marker", "drain", "set_marker", "wait_marker"]

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
# A request may be between Envoy's accept and its counter: one look at nothing is not enough.
_QUIET_LOOKS = 2


class Carrier(Protocol):
    """Who carries the requests; Envoy's admin API is one."""

    def begin(self) -> None:
        """Stops keep-alive and asks peers to go elsewhere. May raise AteError: it is gone."""

    def requests(self) -> int:
        """How many run or wait now. May raise AteError: it is gone."""


async def drain(
    carrier: Carrier,
    *,
    delay: float,
    limit: float,
    hurry: asyncio.Event,
    not_ready: Callable[[], None],
) -> bool:
    """Returns when no request is left, at the latest `limit` seconds after the delay. False: some were left.

    `hurry` (a second signal) ends it at once.
    """
    not_ready()
    _log.info("not ready; serving on until the removal has spread", extra={"delay_seconds": delay})
    if await _set_within(hurry, delay):
        return False
    try:
        await asyncio.to_thread(carrier.begin)
        async with asyncio.timeout(limit):
            return await _until_quiet(carrier, hurry)
    except AteError as error:
        _log.warning("envoy is gone already", extra={"error": error.message})
        return True
    except TimeoutError:
        _log.warning("the drain timeout is over; what is left is cut")
        return False


async def _until_quiet(carrier: Carrier, hurry: asyncio.Event) -> bool:
    quiet = 0
    while True:
        left = await asyncio.to_thread(carrier.requests)
        quiet = quiet + 1 if left == 0 else 0
        if quiet >= _QUIET_LOOKS:
            return True
        if await _set_within(hurry, _POLL_SECONDS):
            _log.warning("second signal: what is left is cut", extra={"requests": left})
            return False


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def clear_marker(file: Path | None) -> None:
    """Removes what an earlier run left: it would release the hook before anything is drained. Raises AteError."""
    if file is None:
        return
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise AteError(
            f"--drain-complete-file: cannot remove the stale {file}: {error.strerror}"
        ) from error


def set_marker(file: Path | None) -> None:
    """Releases the preStop hook. A failure only costs the hook its early end, so it is logged and no more."""
    if file is None:
        return
    partial = file.with_name(f"{file.name}.partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(datetime.now(UTC).isoformat(timespec="milliseconds") + "\n")
        partial.replace(file)
    except OSError as error:
        _log.error("cannot write the drain marker", extra={"file": str(file), "error": str(error)})


def wait_marker(file: Path, limit: float) -> bool:
    """Waits until the file is there. False: it was not, within `limit` seconds."""
    ends, pause = time.monotonic() + limit, threading.Event()
    while not file.exists():
        if time.monotonic() >= ends:
            return False
        pause.wait(_POLL_SECONDS)
    return True
