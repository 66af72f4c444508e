"""What a pool's status says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from atenet.controller.pool import Condition, WorkerPoolStatus
from atenet.controller.views import PodView, PoolView

__all__ = ["pool_status", "waiting_for"]


def pool_status(
    pool: PoolView,
    pods: Iterable[PodView],
    *,
    generation: int,
    selector: str,
    trouble: str | None,
    waiting: str | None,
    before: Sequence[Condition],
    now: datetime,
) -> WorkerPoolStatus:
    """`trouble`: what could not be done. `waiting`: why a pod of it is not ready yet."""
    pods = list(pods)
    alive = [pod for pod in pods if not pod.over and not pod.terminating]
    counted = [pod for pod in alive if pod.drain is None]
    ready = sum(pod.ready for pod in counted)
    updated = sum(pod.hash == pool.hash for pod in counted)
    found = [
        _available(pool, ready),
        _progressing(pool, ready, updated, len(counted), waiting),
        _failing(trouble),
    ]
    return WorkerPoolStatus(
        observed_generation=generation,
        replicas=len(counted),
        ready_replicas=ready,
        updated_replicas=updated,
        draining_replicas=sum(
            pod.terminating or pod.drain is not None for pod in pods if not pod.over
        ),
        selector=selector,
        conditions=[_since(*one, generation, before, now) for one in found],
    )


_Found = tuple[str, bool, str, str]


def _available(pool: PoolView, ready: int) -> _Found:
    least = max(0, pool.replicas - pool.max_unavailable)
    if ready >= least:
        return "Available", True, "EnoughReady", f"{ready} of {pool.replicas} workers take actors"
    return "Available", False, "TooFewReady", f"{ready} of {pool.replicas} workers take actors"


def _progressing(
    pool: PoolView, ready: int, updated: int, counted: int, waiting: str | None
) -> _Found:
    if ready == updated == counted == pool.replicas:
        return "Progressing", False, "AsWanted", "every worker is as the pool says, and ready"
    reason = "Replacing" if updated < counted else "Scaling"
    text = f"{updated} of {pool.replicas} workers are of the present template, {ready} are ready"
    return "Progressing", True, reason, f"{text}; {waiting}" if waiting else text


def _failing(trouble: str | None) -> _Found:
    if trouble is None:
        return "Failing", False, "NoTrouble", "nothing failed at the last look"
    return "Failing", True, "CannotAct", trouble


def _since(
    kind: str,
    true: bool,
    reason: str,
    message: str,
    generation: int,
    before: Sequence[Condition],
    now: datetime,
) -> Condition:
    """With the time of the last change from true to false or back."""
    status = str(true)
    old = next((one for one in before if one.type == kind and one.status == status), None)
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=(
            old.last_transition_time if old is not None else now.strftime("%Y-%m-%dT%H:%M:%SZ")
        ),
        observed_generation=generation,
    )


def waiting_for(pods: Iterable[Any]) -> str | None:
    """Why the first pod that is not ready is not, as Kubernetes says it."""
    for pod in sorted(pods, key=lambda p: str(p.metadata.name)):
        status = pod.status
        if status is None or pod.metadata.deletionTimestamp is not None:
            continue
        for container in status.containerStatuses or []:
            waits = container.state.waiting if container.state is not None else None
            if waits is not None and waits.reason not in (None, "ContainerCreating"):
                return f"pod {pod.metadata.name}: {waits.reason}: {waits.message or ''}".rstrip(
                    ": "
                )
        for condition in status.conditions or []:
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"pod {pod.metadata.name}: {condition.reason}: {condition.message or ''}"
    return None
