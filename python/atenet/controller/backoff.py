"""How long what failed waits before it is tried again."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["Backoff"]

# An API server that restarts is away for some seconds; whoever waits for us then waits so much longer.
_LONGEST_SECONDS = 5.0


class Backoff:
    """Seconds, twice as many after each failure in a row, up to `longest`."""

    def __init__(self, first: float, longest: float = _LONGEST_SECONDS) -> None:
        self.longest = longest
        self._first = self._next = first

    def wait(self, spread: Callable[[], float] = random.random) -> float:
        """After one more failure: half of it at least. `spread`, from 0 to 1, says how much of the rest, so that
        what failed together is not tried again together."""
        now, self._next = self._next, min(self.longest, self._next * 2)
        return now * (0.5 + spread() / 2)

    def reset(self) -> None:
        """It went well."""
        self._next = self._first
