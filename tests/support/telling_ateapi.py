"""A scripted control plane that also tells routers what happens."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import routersupport_pb2 as support_pb
from atenet.proto import routersupport_pb2_grpc as support_grpc

from tests.support.fake_ateapi import FakeAteapi
from tests.support.pki import Pki
from tests.support.resume_steps import Placement

_SYNCED = support_pb.WatchEvent(synced=support_pb.Synced())


class TellingAteapi(FakeAteapi, support_grpc.RouterSupportServicer):
    """The one that the session shares tells nothing: it has no such method."""

    def __init__(self, pki: Pki) -> None:
        super().__init__(pki)
        self._watchers: set[asyncio.Queue[support_pb.WatchEvent]] = set()

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def free_capacity(self) -> None:
        self._tell(support_pb.WatchEvent(capacity_freed=support_pb.CapacityFreed()))

    def end_assignment(self, place: Placement) -> None:
        """The actor is not there any more."""
        atespace, name = place.actor.split("/")
        ended = support_pb.AssignmentEnded(
            actor=pb.ObjectRef(atespace=atespace, name=name),
            actor_uid=place.uid,
            version=place.version + 1,
        )
        self._tell(support_pb.WatchEvent(assignment_ended=ended))

    async def Watch(
        self, request: support_pb.WatchRequest, context: Any
    ) -> AsyncIterator[support_pb.WatchEvent]:
        queue: asyncio.Queue[support_pb.WatchEvent] = asyncio.Queue()
        queue.put_nowait(_SYNCED)
        self._watchers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.discard(queue)

    def _tell(self, event: support_pb.WatchEvent) -> None:
        for queue in self._watchers:
            queue.put_nowait(event)

    def _add_services(self, server: grpc.aio.Server) -> None:
        super()._add_services(server)
        support_grpc.add_RouterSupportServicer_to_server(self, server)
