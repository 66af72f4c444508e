"""The authority that signs now, read from the cluster and kept for a moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from atenet.controller.signing.keeper import Keeper
from atenet.identity.authority import Authority

__all__ = ["Keys"]

# Far less than a rotation waits before it counts on everybody to sign with the new key.
_KEPT = timedelta(seconds=5)


class Keys:
    """A burst of requests reads a Secret once."""

    def __init__(self, keeper: Keeper, clock: Callable[[], datetime]) -> None:
        self._keeper = keeper
        self._clock = clock
        self._known: dict[str, tuple[datetime, Authority]] = {}

    async def current(self, name: str) -> Authority:
        """Raises AteError or one of UNREACHABLE."""
        now = self._clock()
        known = self._known.get(name)
        if known is None or not now - _KEPT <= known[0] <= now:
            known = (now, (await self._keeper.kept(name, now)).holding.current)
            self._known[name] = known
        return known[1]
