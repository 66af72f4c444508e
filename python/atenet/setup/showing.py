"""What `ate-setup status` shows: how far workloads and pools are, what stands in their way, and who signs for long."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from atenet.controller.signing import names
from atenet.setup import inventory as inventories
from atenet.setup.aging import Aging, aging
from atenet.setup.api import Api
from atenet.setup.diagnosis import Problem, progress
from atenet.setup.installing import require
from atenet.setup.kinds import Reference, reference
from atenet.setup.objects.names import NAMESPACE
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
    authorities: tuple[Aging, ...] = ()

    @property
    def healthy(self) -> bool:
        return all(part.healthy for part in self.parts) and not any(
            each.over for each in self.authorities
        )

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "healthy": self.healthy}


def standing(api: Api, now: datetime | None = None) -> Standing:
    """`now`: default: this machine's clock. Raises AteError: nothing is installed."""
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
    old = tuple(aging(_bundles(api), now or datetime.now(UTC)))
    return Standing(found.version, dataplane, tuple(parts), tuple(problems), old)


def _bundles(api: Api) -> dict[str, Any]:
    """Certificates alone: whoever may look needs to read no key. Raises AteError: one cannot be read."""
    from atenet.controller.signing.keeper import parse_bundle

    found = api.get(Reference("ConfigMap", names.AUTHORITIES_MAP, NAMESPACE)) or {}
    texts = {
        name: (found.get("data") or {}).get(names.trust_key(name)) for name in names.ALL_AUTHORITIES
    }
    return {name: parse_bundle(text, name) for name, text in texts.items() if text}


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
