"""The end of background tasks at a stop: told once, waited for, and never for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

__all__ = ["ENDING_SECONDS", "ended"]

_log = logging.getLogger(__name__)

# What a cancelled task may take: it ends at its next wait, or behind a write to the store.
ENDING_SECONDS = 5.0


async def ended(tasks: Iterable[asyncio.Task[Any]], seconds: float = ENDING_SECONDS) -> None:
    """Cancels tasks and waits for their ends, whatever they come to; one that outlasts `seconds` is named and left."""
    told = set(tasks)
    for task in told:
        task.cancel()
    if not told:
        return
    done, late = await asyncio.wait(told, timeout=seconds)
    for task in done:
        # Looked at, so that nobody reports it as never retrieved.
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.debug("a task failed as it ended", exc_info=error, extra={"task": task.get_name()})
    for task in late:
        _log.error("a task does not end; the stop goes on", extra={"task": task.get_name()})
