"""What `ate-setup status` shows: of each workload and worker pool how far it is, and what stands in its way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from atenet.setup import inventory as inventories
from atenet.setup.api import Api
from atenet.setup.diagnosis import Problem, progress
from atenet.setup.installing import require
from atenet.setup.kinds import Reference, reference
from atenet.setup.waiting import trouble

__all__ = ["Part", "Standing", "standing"]


@dataclass(frozen=True)
class Part:
    """One row."""

    what: str
    ready: str
    healthy: bool
    image: str = ""


@dataclass(frozen=True)
class Standing:
    """All of it."""

    version: str
    dataplane: str
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...]

    @property
    def healthy(self) -> bool:
        return all(part.healthy for part in self.parts)

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "healthy": self.healthy}


def standing(api: Api) -> Standing:
    """Raises AteError: nothing is installed."""
    found = require(inventories.read(api))
    parts: list[Part] = []
    problems: list[Problem] = []
    for which in sorted(found.objects):
        if which.kind in ("Deployment", "DaemonSet"):
            part = _workload(api, which)
            parts.append(part)
            problems += [] if part.healthy else trouble(api, which)
        elif which.kind not in ("WorkerPool", "Secret") and api.get(which) is None:
            parts.append(Part(str(which), "missing", healthy=False))
    parts += _pools(api)
    dataplane = str(found.values.get("atenetDataplane", "envoy"))
    return Standing(found.version, dataplane, tuple(parts), tuple(problems))


def _workload(api: Api, which: Reference) -> Part:
    workload = api.get(which)
    if workload is None:
        return Part(str(which), "missing", healthy=False)
    done, how_far = progress({**workload, "kind": which.kind})
    image = workload["spec"]["template"]["spec"]["containers"][0]["image"]
    return Part(str(which), how_far, done, image)


def _pools(api: Api) -> list[Part]:
    rows = []
    for pool in api.list("WorkerPool") or []:
        status = pool.get("status") or {}
        wanted, ready = (pool.get("spec") or {}).get("replicas", 0), status.get("readyReplicas", 0)
        rows.append(Part(str(reference(pool)), f"{ready} of {wanted}", ready >= wanted))
    return rows
