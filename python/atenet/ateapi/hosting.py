"""Claims against what workers say they host. Pure: sets in, differences out."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

__all__ = ["Difference", "HostingLedger"]


@dataclass(frozen=True)
class Difference:
    """`missing`: RUNNING here, but not hosted. `strays`: hosted, but nobody's claim."""

    missing: frozenset[str] = frozenset()
    strays: frozenset[str] = frozenset()


@dataclass
class HostingLedger:
    """Believes a difference when two heartbeats in a row show it.

    One heartbeat alone may have left the worker before the change that it contradicts.
    """

    _last: dict[str, Difference] = field(default_factory=dict)

    def observe(
        self,
        worker: str,
        *,
        hosted: Set[str],
        running: Set[str],
        claimed: Set[str],
        settled: Set[str] = frozenset(),
    ) -> Difference:
        """Uids as of one heartbeat: `running` actors of this worker, all its `claimed` ones.

        `settled` ones have been running for longer than any heartbeat travels: they are missing
        at first sight.
        """
        now = Difference(frozenset(running - hosted), frozenset(hosted - claimed))
        before = self._last.get(worker, Difference())
        self._last[worker] = now
        return Difference(
            now.missing & (before.missing | settled),
            now.strays & before.strays,
        )

    def forget(self, worker: str) -> None:
        """A new incarnation, or none any more."""
        self._last.pop(worker, None)
