"""How long what failed waits before it is tried again."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["Backoff"]

# An API server that restarts is away for some seconds; whoever waits for us then waits so much longer.
_LONGEST_SECONDS = 5.0


class Backoff:
    """Seconds, twice as many after each failure in a row, up to `longest`.

    `part` spreads what failed together: it says which part of a wait is waited, half at least.
    """

    def __init__(
        self,
        first: float,
        longest: float = _LONGEST_SECONDS,
        *,
        part: Callable[[], float] = lambda: random.uniform(0.5, 1.0),  # noqa: S311 - hides nothing
    ) -> None:
        self.longest = longest
        self._first = self._next = first
        self._part = part

    def wait(self) -> float:
        """After one more failure."""
        now, self._next = self._next, min(self.longest, self._next * 2)
        return now * self._part()

    def reset(self) -> None:
        """It went well."""
        self._next = self._first
