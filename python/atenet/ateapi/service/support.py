"""RouterSupport: what routers are told as it happens, so that nobody waits for a retry to learn it.

Each router that watches has a queue of its own. One that does not read for so long that its queue
is full is told to look at everything anew, and loses nothing by it but time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from atenet.ateapi.callers import Access
from atenet.ateapi.failure import CallError
from atenet.ateapi.metrics import Metrics
from atenet.ateapi.store.news import ActorNews, News, Topic
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import routersupport_pb2 as support_pb

__all__ = ["SERVICE", "RouterSupport"]

SERVICE = support_pb.DESCRIPTOR.services_by_name["RouterSupport"].full_name
_WATCH = f"/{SERVICE}/Watch"
_LOCATE = f"/{SERVICE}/Locate"
# Events that wait for one router. A burst of thousands of suspends is worth a resync.
_QUEUE = 1024
_log = logging.getLogger(__name__)

_SYNCED = support_pb.WatchEvent(synced=support_pb.Synced())
_CAPACITY = support_pb.WatchEvent(capacity_freed=support_pb.CapacityFreed())


class RouterSupport:
    def __init__(self, access: Access, metrics: Metrics, *, queue: int = _QUEUE) -> None:
        self._access = access
        self._metrics = metrics
        self._limit = queue
        self._watchers: set[_Watcher] = set()
        metrics.watches.set_function(lambda: len(self._watchers))

    def heard(self, news: News) -> None:
        """A store's subscriber."""
        event = _event_of(news)
        if event is not None:
            for watcher in self._watchers:
                watcher.put(event)

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        watch = grpc.unary_stream_rpc_method_handler(
            self._watch,
            request_deserializer=support_pb.WatchRequest.FromString,
            response_serializer=support_pb.WatchEvent.SerializeToString,
        )
        locate = grpc.stream_stream_rpc_method_handler(
            self._locate,
            request_deserializer=support_pb.LocateRequest.FromString,
            response_serializer=support_pb.LocateResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Watch": watch, "Locate": locate})

    def close(self) -> None:
        """Ends every watch: Unavailable, so that routers look for another control plane."""
        for watcher in self._watchers:
            watcher.end()

    async def _watch(
        self, _request: support_pb.WatchRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[support_pb.WatchEvent]:
        count = self._metrics.of_method("RouterSupport", "Watch")
        await self._admit(context, _WATCH)
        watcher = _Watcher(self._limit)
        self._watchers.add(watcher)
        try:
            while (event := await watcher.next()) is not None:
                yield event
        finally:
            self._watchers.discard(watcher)
        count.answered("UNAVAILABLE", 0.0)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the control plane is stopping")

    async def _locate(
        self,
        _requests: AsyncIterator[support_pb.LocateRequest],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[support_pb.LocateResponse]:
        """The front's to answer, where there is one: here a look-up costs what a call costs."""
        await self._admit(context, _LOCATE)
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "look-ups are answered by the front")
        yield support_pb.LocateResponse()  # what makes it a stream

    async def _admit(self, context: grpc.aio.ServicerContext[Any, Any], method: str) -> None:
        try:
            await self._access.admit(context, method)
        except CallError as e:
            name = method.rpartition("/")[2]
            self._metrics.of_method("RouterSupport", name).answered(e.code.name, 0.0)
            await context.abort(e.code, e.message)


class _Watcher:
    """One router's queue. It begins with `synced`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events: deque[support_pb.WatchEvent | None] = deque([_SYNCED])
        self._ready = asyncio.Event()
        self._ready.set()

    def put(self, event: support_pb.WatchEvent) -> None:
        if event == _CAPACITY and self._events and self._events[-1] == _CAPACITY:
            return  # told once, it is told
        if event == _SYNCED or len(self._events) >= self._limit:
            # Whatever waited is contained in that.
            self._events.clear()
            event = _SYNCED
        self._events.append(event)
        self._ready.set()

    def end(self) -> None:
        self._events.append(None)
        self._ready.set()

    async def next(self) -> support_pb.WatchEvent | None:
        """The next event; None: there will be none."""
        while not self._events:
            self._ready.clear()
            await self._ready.wait()
        return self._events.popleft()


def _event_of(news: News) -> support_pb.WatchEvent | None:
    if news.topic is Topic.CAPACITY:
        return _CAPACITY
    if news.topic is Topic.ANYTHING:
        return _SYNCED
    if news.topic is not Topic.ACTOR:
        return None
    actor = ActorNews.parse(news.subject)
    ended = support_pb.AssignmentEnded(
        actor=pb.ObjectRef(atespace=actor.atespace, name=actor.name),
        actor_uid=actor.uid,
        version=actor.version,
    )
    return support_pb.WatchEvent(assignment_ended=ended)
