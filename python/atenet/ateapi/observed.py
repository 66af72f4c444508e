"""The store as calls and workflows see it: each write is a step with a span, and the first one of
a call carries its entry in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from atenet.ateapi import audit
from atenet.ateapi.store import AuditEntry, Store, Transaction
from atenet.ateapi.store.news import Subscriber
from atenet.ateapi.tracing import Tracing, in_span, tag
from atenet.proto import ateapi_pb2 as pb

__all__ = ["ObservedStore"]

T = TypeVar("T")


class ObservedStore:
    """See `store.interface.Store`."""

    def __init__(self, inner: Store, tracing: Tracing, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._tracing = tracing
        self._clock = clock
        # Reads are many and small: the warm path is one of them, and goes through untouched.
        self.read = inner.read

    async def write(self, change: Callable[[Transaction], T]) -> T:
        pending = audit.pending()
        if pending is not None and not pending.written:
            return await self._audited(change, pending)
        untold: T = await self._traced(change, change)
        return untold

    async def _audited(self, change: Callable[[Transaction], T], pending: audit.Pending) -> T:
        at = self._clock()

        def audited(tx: Transaction) -> tuple[T, AuditEntry | None]:
            result = change(tx)
            entry = pending.entry(result, step_name(change), at)
            if entry is not None:
                tx.audit.append(entry)
            return result, entry

        result: T
        result, entry = await self._traced(audited, change)
        if entry is not None:
            pending.stored(entry)
        return result

    async def _traced(self, work: Callable[[Transaction], Any], named: Callable[..., Any]) -> Any:
        # What is written at regular times, outside of calls and operations, is no step of anything.
        if not self._tracing.on or (audit.pending() is None and not in_span()):
            return await self._inner.write(work)
        with self._tracing.step(f"store {step_name(named)}") as span:
            result = await self._inner.write(work)
            about = result[0] if isinstance(result, tuple) else result
            if isinstance(about, pb.Actor):
                tag(span, about.metadata.atespace, about.metadata.name)
            return result

    def hold(self, actor_uid: str) -> AbstractAsyncContextManager[None]:
        return self._inner.hold(actor_uid)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        return self._inner.subscribe(subscriber)

    async def alone(self) -> bool:
        return await self._inner.alone()

    async def close(self) -> None:
        await self._inner.close()


def step_name(change: Callable[..., Any]) -> str:
    """`begin_suspend` for the function that `changes.begin_suspend` returned."""
    name = getattr(change, "__qualname__", "change")
    return name.partition(".")[0].strip("_") or "change"
