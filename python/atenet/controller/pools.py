"""One look at one worker pool: what is there, what is wanted, and the difference done."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from lightkube import ApiError

from atenet.controller.cache import Cache, Key
from atenet.controller.plan import Plan, candidates, of_interest, plan
from atenet.controller.records import UNANSWERED, Records
from atenet.controller.resource import conditions_of, spec_of, status_of
from atenet.controller.status import pool_status, waiting_for
from atenet.controller.views import FINALIZER, PodView, PoolView, WorkerView, pod_view
from atenet.controller.worker_pod import NAME_LETTERS, PodSettings, pool_labels, template_hash
from atenet.controller.writing import Writing
from atenet.errors import AteError

__all__ = ["PoolLook"]

Clock = Callable[[], datetime]
# Of so many workers it is asked anew which has the fewest actors; of more, the last sweep tells.
_ASK_AT_MOST = 50
# The control plane does not answer: nothing else will call for another look.
_UNANSWERED_SECONDS = 2.0
# Of a pod that could not be made: another one each time.
_NAME_END = re.compile(rf"-[{NAME_LETTERS}]{{8}}(?=\")")
# A pool that is not there, or of which a pod is: all that is left goes.
_GONE = PoolView(replicas=0, deleting=True)


def _utc() -> datetime:
    return datetime.now(UTC)


class PoolLook:
    """`loads`: actors by worker, as of the last sweep."""

    def __init__(
        self,
        pools: Cache[Any],
        pods: Cache[Any],
        records: Records,
        writing: Writing,
        settings: PodSettings,
        loads: Mapping[str, int],
        clock: Clock = _utc,
    ) -> None:
        self._pools = pools
        self._pods = pods
        self._records = records
        self._writing = writing
        self._settings = settings
        self._loads = loads
        self._clock = clock

    async def __call__(self, key: Key) -> float | None:
        """After how many seconds to look again even if nothing changes. Raises what could not be done."""
        await self._writing.settle(key)
        pool = self._pools.get(key)
        pods = self._pods.group(key)
        uid = None if pool is None else pool.metadata.uid
        strangers = [pod for pod in pods if _owner(pod) != uid]
        again = await self._leave(key, strangers)
        if pool is not None:
            own = [pod for pod in pods if _owner(pod) == uid]
            again = _sooner(again, await self._keep(key, pool, own))
        return again

    async def _keep(self, key: Key, pool: Any, pods: list[Any]) -> float | None:
        try:
            spec = spec_of(pool)
        except AteError as error:
            await self._report(key, pool, PoolView(replicas=len(pods)), pods, str(error))
            return None
        deleting = pool.metadata.deletionTimestamp is not None
        view = PoolView(
            replicas=0 if deleting else spec.replicas,
            hash=template_hash(key, spec, self._settings),
            max_surge=spec.strategy.max_surge,
            max_unavailable=spec.strategy.max_unavailable,
            deadline_seconds=spec.drain.deadline_seconds,
            deleting=deleting,
        )
        if not deleting and FINALIZER not in (held := list(pool.metadata.finalizers or [])):
            await self._writing.finalizers(pool, [*held, FINALIZER])
        failure: Exception | None = None
        decided = await self._decide(view, self._views(pods))
        try:
            await self._do(key, decided)
            if decided.create:
                await self._writing.create(
                    key, pool.metadata.uid, spec, self._settings, decided.create
                )
        except (ApiError, *UNANSWERED) as error:
            failure = error
        await self._report(key, pool, view, self._pods.group(key), _trouble(failure))
        if failure is not None:
            raise failure
        if decided.finished:
            await self._let_go(key)
        return decided.again_in

    async def _leave(self, key: Key, pods: list[Any]) -> float | None:
        """Pods of a pool that is gone: drained as when it was scaled down, then deleted."""
        if not pods:
            return None
        decided = await self._decide(_GONE, self._views(pods))
        await self._do(key, decided)
        return decided.again_in

    async def _decide(self, view: PoolView, pods: list[PodView]) -> Plan:
        names = of_interest(pods)
        choice = candidates(view, pods)
        known: dict[str, WorkerView | None] = {}
        if len(choice) <= _ASK_AT_MOST:
            names += choice
        else:
            known = {
                name: WorkerView(actors=self._loads.get(name, 0), draining=False) for name in choice
            }
        known |= await self._records.look(names)
        return plan(view, pods, known, self._clock())

    async def _do(self, key: Key, decided: Plan) -> None:
        for pod in decided.undrain:
            await self._records.undrain(pod.name)
            await self._writing.unmark(Key(key.namespace, pod.name), pod.uid)
        now = self._clock()
        for pod, reason in decided.mark:
            await self._writing.mark(Key(key.namespace, pod.name), pod.uid, reason, now)
        for name in (*decided.drain, *(pod.name for pod, _ in decided.mark)):
            await self._records.drain(name)
        for pod in decided.delete:
            await self._writing.delete(Key(key.namespace, pod.name))

    async def _report(
        self, key: Key, pool: Any, view: PoolView, pods: list[Any], trouble: str | None
    ) -> None:
        """Only what differs is written."""
        selector = ",".join(f"{k}={v}" for k, v in sorted(pool_labels(key.name).items()))
        status = pool_status(
            view,
            self._views(pods),
            generation=pool.metadata.generation or 0,
            selector=selector,
            trouble=trouble,
            waiting=waiting_for(pods),
            before=conditions_of(pool),
            now=self._clock(),
        ).model_dump(by_alias=True)
        if status != status_of(self._pools.get(key) or pool):
            await self._writing.status(pool, status)

    async def _let_go(self, key: Key) -> None:
        pool = self._pools.get(key)
        held = [] if pool is None else list(pool.metadata.finalizers or [])
        if FINALIZER in held:
            await self._writing.finalizers(pool, [one for one in held if one != FINALIZER])

    def _views(self, pods: list[Any]) -> list[PodView]:
        now = self._clock()
        return [pod_view(pod, now) for pod in pods]


def _owner(pod: Any) -> str | None:
    owners = pod.metadata.ownerReferences or []
    return next((str(one.uid) for one in owners if one.controller), None)


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((wait for wait in (one, other) if wait is not None), default=None)


def _trouble(failure: Exception | None) -> str | None:
    """In the server's own words, without what changes from time to time."""
    if failure is None:
        return None
    if isinstance(failure, ApiError):
        text = failure.status.message or failure.status.reason or str(failure)
        return f"Kubernetes: {_NAME_END.sub('-…', text)}"
    if isinstance(failure, UNANSWERED):
        return f"control plane: {failure.code().name}"
    return str(failure)
