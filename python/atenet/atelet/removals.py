"""Removes what has been put aside, while nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from atenet import trees

__all__ = ["Removals"]

_log = logging.getLogger(__name__)


class Removals:
    """What a killed agent leaves is removed with the next that is put aside of the same actor."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[None]] = set()

    def add(self, paths: Iterable[Path]) -> None:
        loop = asyncio.get_running_loop()
        for path in paths:
            removal = loop.run_in_executor(None, _remove, path)
            self._running.add(removal)
            removal.add_done_callback(self._running.discard)

    async def settled(self) -> None:
        """Returns when nothing is being removed any more."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)


def _remove(path: Path) -> None:
    try:
        trees.remove(path)
    except OSError as e:
        _log.warning("what is not needed any more stays", extra={"error": str(e)})
