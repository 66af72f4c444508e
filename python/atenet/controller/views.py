"""What a decision looks at: pools, pods and workers as plain values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from atenet.controller.pool import GROUP
from atenet.controller.worker_pod import HASH_LABEL

__all__ = [
    "DRAIN_REASON",
    "DRAIN_SINCE",
    "FINALIZER",
    "Drain",
    "PodView",
    "PoolView",
    "Reason",
    "WorkerView",
    "pod_view",
]

FINALIZER = f"{GROUP}/workers"
# On a pod: it is on its way out. Whoever sets the reason has it drained and replaced.
DRAIN_REASON = f"{GROUP}/drain"
DRAIN_SINCE = f"{GROUP}/drain-since"


class Reason(Enum):
    SCALE_DOWN = "scale-down"
    ROLLOUT = "rollout"
    POOL_DELETED = "pool-deleted"
    # Somebody else's word.
    ASKED = "asked"


@dataclass(frozen=True)
class Drain:
    reason: Reason
    since: datetime


@dataclass(frozen=True)
class PoolView:
    """`replicas` is 0 for one that is deleted, or is not there any more."""

    replicas: int
    hash: str = ""
    max_surge: int = 1
    max_unavailable: int = 0
    deadline_seconds: float = 300.0
    deleting: bool = False


@dataclass(frozen=True)
class PodView:
    name: str
    uid: str
    hash: str = ""
    created: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    ready: bool = False
    # Its containers have ended for good.
    over: bool = False
    # Deleted, or being so.
    terminating: bool = False
    drain: Drain | None = None


@dataclass(frozen=True)
class WorkerView:
    """A record of the control plane."""

    actors: int
    draining: bool
    uid: str = ""
    version: int = 0
    pod_uid: str = ""


def pod_view(pod: Any, now: datetime) -> PodView:
    meta, status = pod.metadata, pod.status
    conditions = (status.conditions if status is not None else None) or []
    return PodView(
        name=meta.name,
        uid=meta.uid,
        hash=(meta.labels or {}).get(HASH_LABEL, ""),
        created=meta.creationTimestamp or now,
        ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        over=status is not None and status.phase in ("Failed", "Succeeded"),
        terminating=meta.deletionTimestamp is not None,
        drain=_drain(meta.annotations or {}, now),
    )


def _drain(annotations: dict[str, str], now: datetime) -> Drain | None:
    """A time that cannot be read is now: better drained for too long than not at all."""
    text = annotations.get(DRAIN_REASON)
    if text is None:
        return None
    known = {reason.value: reason for reason in Reason}
    try:
        since = datetime.fromisoformat(annotations.get(DRAIN_SINCE, ""))
    except ValueError:
        since = now
    return Drain(
        known.get(text, Reason.ASKED), since if since.tzinfo else since.replace(tzinfo=UTC)
    )
