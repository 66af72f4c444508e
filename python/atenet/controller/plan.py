"""What is to be done for one pool. Pure: what is there in, actions out.

Nothing is remembered between two looks: a drain that was begun is written on its pod, and every look
at the same state comes to the same actions. Doing them twice does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from atenet.controller.views import PodView, PoolView, Reason, WorkerView

__all__ = ["Plan", "candidates", "of_interest", "plan"]

# How often the control plane is asked whether a draining worker has become empty.
_LOOK_AGAIN_SECONDS = 2.0
# A pod that failed at once (its node refused it, say) keeps its place for so long: what takes it would
# only fail as well.
_FAILED_REST = timedelta(seconds=10)


@dataclass(frozen=True)
class Plan:
    """In this order: a worker that is kept after all is undrained before anything is created."""

    undrain: tuple[PodView, ...] = ()
    create: int = 0
    mark: tuple[tuple[PodView, Reason], ...] = ()
    # Workers, by name, that are to take no more actors.
    drain: tuple[str, ...] = ()
    delete: tuple[PodView, ...] = ()
    # Nothing of the pool is left that must be seen to before it may go.
    finished: bool = False
    again_in: float | None = None


@dataclass
class _Sorted:
    """`counted`: those that are there to stay, as far as is decided."""

    counted: list[PodView] = field(default_factory=list)
    draining: list[PodView] = field(default_factory=list)
    over: list[PodView] = field(default_factory=list)
    resting: list[PodView] = field(default_factory=list)
    terminating: list[PodView] = field(default_factory=list)


def _sorted(pods: Iterable[PodView], now: datetime | None = None) -> _Sorted:
    found = _Sorted()
    for pod in sorted(pods, key=lambda p: (p.created, p.name)):
        if pod.terminating:
            found.terminating.append(pod)
        elif pod.over and now is not None and now - pod.created < _FAILED_REST:
            found.resting.append(pod)
        elif pod.over:
            found.over.append(pod)
        elif pod.drain is not None:
            found.draining.append(pod)
        else:
            found.counted.append(pod)
    return found


def of_interest(pods: Iterable[PodView]) -> list[str]:
    """Workers whose records decide what happens to their pods."""
    found = _sorted(pods)
    return [pod.name for pod in (*found.draining, *found.terminating, *found.over)]


def candidates(pool: PoolView, pods: Iterable[PodView]) -> list[str]:
    """Workers of which some, and not all, are to be chosen to go: by how many actors they have."""
    found = _sorted(pods)
    going = {pod.name for pod, _ in _going(pool, found, {})}
    choice = _outdated(pool, found.counted) if _surplus(pool, found) <= 0 else found.counted
    ready = [pod.name for pod in choice if pod.ready]
    return ready if going & set(ready) and not going >= set(ready) else []


def plan(
    pool: PoolView,
    pods: Iterable[PodView],
    workers: Mapping[str, WorkerView | None],
    now: datetime,
) -> Plan:
    """`workers`: None for one that the control plane has no record of; not in it: it was not asked
    or did not answer."""
    found = _sorted(pods, now)
    kept = _kept(pool, found)
    staying = [*found.counted, *kept]
    leaving = [pod for pod in found.draining if pod not in kept]
    create = max(0, _missing(pool, staying, leaving) - len(found.resting))
    mark = _going(pool, found, workers)
    drained, empty, again_in = _drained(pool, leaving, workers, now)
    if found.resting:
        again_in = min(again_in or 60.0, _FAILED_REST.total_seconds())
    tell = [
        pod.name
        for pod in (*leaving, *found.terminating, *found.over, *found.resting)
        if (worker := workers.get(pod.name)) is not None and not worker.draining
    ]
    return Plan(
        undrain=tuple(kept),
        create=create,
        mark=tuple(mark),
        drain=tuple(tell),
        delete=(*found.over, *drained, *empty),
        finished=pool.deleting and not (staying or leaving or found.resting),
        again_in=again_in,
    )


def _outdated(pool: PoolView, pods: Sequence[PodView]) -> list[PodView]:
    return [pod for pod in pods if pod.hash != pool.hash]


def _ceiling(pool: PoolView, counted: Sequence[PodView]) -> int:
    """How many there may be: more than wanted only while some are to be replaced."""
    return pool.replicas + min(pool.max_surge, len(_outdated(pool, counted)))


def _surplus(pool: PoolView, found: _Sorted) -> int:
    return len(found.counted) - _ceiling(pool, found.counted)


def _kept(pool: PoolView, found: _Sorted) -> list[PodView]:
    """Draining ones that are wanted again after all: sooner there than any new pod."""
    missing = pool.replicas - len(found.counted)
    good = [
        pod
        for pod in found.draining
        if pod.drain is not None
        and pod.drain.reason is Reason.SCALE_DOWN
        and pod.ready
        and pod.hash == pool.hash
    ]
    return good[: max(0, missing)]


def _missing(pool: PoolView, staying: Sequence[PodView], leaving: Sequence[PodView]) -> int:
    """One that is being replaced holds its place until its pod is gone, so that no more run at a
    time than replicas and surge; one that is to go for good, or is on its way out by somebody's word, does not."""
    replaced = [p for p in leaving if p.drain is not None and p.drain.reason is Reason.ROLLOUT]
    return max(0, _ceiling(pool, staying) - len(staying) - len(replaced))


def _going(
    pool: PoolView, found: _Sorted, workers: Mapping[str, WorkerView | None]
) -> list[tuple[PodView, Reason]]:
    """Those that begin to leave now."""
    surplus = _surplus(pool, found)
    if surplus > 0:
        reason = Reason.POOL_DELETED if pool.deleting else Reason.SCALE_DOWN
        order = sorted(found.counted, key=lambda p: _first_to_go(pool, p, workers))
        return [(pod, reason) for pod in order[:surplus]]
    return [(pod, Reason.ROLLOUT) for pod in _replaceable(pool, found, workers)]


def _replaceable(
    pool: PoolView, found: _Sorted, workers: Mapping[str, WorkerView | None]
) -> list[PodView]:
    """Outdated ones that can go now without too few being ready; those that are not ready first."""
    outdated = _outdated(pool, found.counted)
    fresh = [pod for pod in found.counted if pod.hash == pool.hash]
    least = pool.replicas - pool.max_unavailable
    # A fresh one that is not ready yet is no reason to let another one go.
    may_go = len(found.counted) - least - sum(not pod.ready for pod in fresh)
    ready_may_go = sum(pod.ready for pod in found.counted) - least
    order = sorted(outdated, key=lambda p: _first_to_go(pool, p, workers))
    idle = [pod for pod in order if not pod.ready][: max(0, may_go)]
    serving = [pod for pod in order if pod.ready]
    return idle + serving[: max(0, min(may_go - len(idle), ready_may_go))]


def _first_to_go(
    pool: PoolView, pod: PodView, workers: Mapping[str, WorkerView | None]
) -> tuple[bool, bool, int, float, str]:
    """Not ready, outdated, with the fewest actors, the youngest."""
    worker = workers.get(pod.name)
    actors = 0 if worker is None else worker.actors
    return (pod.ready, pod.hash == pool.hash, actors, -pod.created.timestamp(), pod.name)


def _drained(
    pool: PoolView,
    leaving: Sequence[PodView],
    workers: Mapping[str, WorkerView | None],
    now: datetime,
) -> tuple[list[PodView], list[PodView], float | None]:
    """Those whose time is up, those that are empty, and when to look at the others again."""
    overdue: list[PodView] = []
    empty: list[PodView] = []
    waits: list[float] = []
    for pod in leaving:
        assert pod.drain is not None
        left = timedelta(seconds=pool.deadline_seconds) - (now - pod.drain.since)
        if left <= timedelta():
            overdue.append(pod)
        elif _is_empty(pod, workers):
            empty.append(pod)
        else:
            waits.append(min(_LOOK_AGAIN_SECONDS, left.total_seconds()))
    return overdue, empty, min(waits, default=None)


def _is_empty(pod: PodView, workers: Mapping[str, WorkerView | None]) -> bool:
    """No actor can be on it, nor come: a record that is draining is claimed no more."""
    if pod.name not in workers:
        return False
    worker = workers[pod.name]
    return worker is None or (worker.draining and worker.actors == 0)
