"""What this process depends on, looked at again and again. It is shown; only Envoy's part decides readiness."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Check", "Health"]

_log = logging.getLogger(__name__)

_LIMIT_SECONDS = 3.0


@dataclass
class Check:
    """One dependency. Times are seconds since 1970."""

    healthy: bool = False
    message: str = "not looked at yet"
    last_success: float | None = None
    last_failure: float | None = None
    success_count: int = 0
    failure_count: int = 0


class Health:
    """Runs each look every `interval` seconds; a look returns what is wrong, or None."""

    def __init__(
        self, looks: Mapping[str, Callable[[], Awaitable[str | None]]], *, interval: float
    ) -> None:
        self._looks = looks
        self._interval = interval
        self.checks = {name: Check() for name in looks}

    async def run(self) -> None:
        """For ever."""
        await asyncio.gather(*(self._watch(name) for name in self._looks))

    def describe(self) -> dict[str, dict[str, Any]]:
        return {name: asdict(check) for name, check in self.checks.items()}

    async def _watch(self, name: str) -> None:
        while True:
            await self.look(name)
            await asyncio.sleep(self._interval)

    async def look(self, name: str) -> bool:
        """Looks now."""
        try:
            async with asyncio.timeout(_LIMIT_SECONDS):
                problem = await self._looks[name]()
        except TimeoutError:
            problem = f"no answer within {_LIMIT_SECONDS:g} s"
        self._note(name, problem)
        return problem is None

    def _note(self, name: str, problem: str | None) -> None:
        check, was = self.checks[name], self.checks[name].healthy
        check.healthy, check.message = problem is None, problem or "ok"
        if problem is None:
            check.last_success, check.success_count = time.time(), check.success_count + 1
        else:
            check.last_failure, check.failure_count = time.time(), check.failure_count + 1
        if was != check.healthy:
            _log.log(
                logging.INFO if check.healthy else logging.WARNING,
                "a dependency changed",
                extra={"dependency": name, "healthy": check.healthy, "reason": check.message},
            )
