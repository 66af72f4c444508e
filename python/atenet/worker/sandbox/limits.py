"""What an actor may use: the template's limits and those that every actor has."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from atenet.proto import ateapi_pb2

__all__ = ["PROCESSES", "Limits", "apply_rlimits"]

PROCESSES = 4096

# The account belongs to one actor, so its process limit bounds that actor even without cgroups.
_RLIMITS: dict[int, int] = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_MEMLOCK: 8 * 1024 * 1024,
    resource.RLIMIT_NOFILE: 16384,
    resource.RLIMIT_NPROC: PROCESSES,
}


@dataclass(frozen=True)
class Limits:
    """0 = no limit. `cpu_milli`: thousandths of a core."""

    cpu_milli: int = 0
    memory_bytes: int = 0

    @classmethod
    def of(cls, template: ateapi_pb2.ActorTemplate) -> Limits:
        return cls(template.resources.cpu_milli, template.resources.memory_bytes)

    def __bool__(self) -> bool:
        return bool(self.cpu_milli or self.memory_bytes)


def apply_rlimits(pid: int) -> None:
    """Sets them on a process that has not become the actor yet; its children inherit them."""
    for which, wanted in _RLIMITS.items():
        limit = _at_most(wanted, resource.prlimit(pid, which)[1])
        resource.prlimit(pid, which, (limit, limit))


def _at_most(wanted: int, hard: int) -> int:
    """Never above what the worker itself may have: raising that takes a capability of its own."""
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
