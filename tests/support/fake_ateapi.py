"""A control plane with scripted answers: a real gRPC server over mTLS, without a workflow."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Self

import grpc
import grpc.aio
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc

from tests.support.pki import Pki
from tests.support.resume_steps import Placement, ResumeFailedError, Step, running


@dataclass
class Script:
    """An actor's answers in turn; the last one is given for ever."""

    steps: list[Step] = field(default_factory=list)

    def next(self) -> Step | None:
        if len(self.steps) > 1:
            return self.steps.pop(0)
        return self.steps[0] if self.steps else None


@dataclass(frozen=True)
class SeenCall:
    actor: str
    metadata: dict[str, str]
    at: float


class FakeAteapi(ateapi_pb2_grpc.ControlServicer):
    """Counts calls; answers ResumeActor and GetActor by script. Unknown actors are NotFound."""

    def __init__(self, pki: Pki) -> None:
        self._pki = pki
        self._scripts: defaultdict[str, Script] = defaultdict(Script)
        self._server: grpc.aio.Server | None = None
        self._changed = asyncio.Condition()
        self.address = ""
        self.calls: Counter[str] = Counter()
        self.in_air: Counter[str] = Counter()
        self.most_in_air: Counter[str] = Counter()
        self.seen: list[SeenCall] = []

    async def start(self, address: str = "127.0.0.1:0") -> Self:
        bundle = self._pki.api.read_bytes()
        credentials = grpc.ssl_server_credentials(
            [(bundle, bundle)], root_certificates=self._pki.pods.pem, require_client_auth=True
        )
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._add_services(self._server)
        port = self._server.add_secure_port(address, credentials)
        self.address = f"{address.rsplit(':', 1)[0]}:{port}"
        await self._server.start()
        return self

    def _add_services(self, server: grpc.aio.Server) -> None:
        ateapi_pb2_grpc.add_ControlServicer_to_server(self, server)

    async def close(self, grace: float | None = None) -> None:
        if self._server is not None:
            await self._server.stop(grace)
            self._server = None

    # -- what tests say

    def script(self, actor: str, *steps: Step) -> None:
        """Replaces the actor's answers."""
        self._scripts[actor] = Script(list(steps))

    def place(self, place: Placement) -> None:
        """The actor is running there."""
        self.script(place.actor, running(place))

    @property
    def total(self) -> int:
        """Calls for any actor, well-named or not."""
        return self.calls.total()

    async def wait_for_calls(self, actor: str, count: int, limit: float = 20.0) -> None:
        """Until the actor was asked for `count` times."""
        async with asyncio.timeout(limit), self._changed:
            await self._changed.wait_for(lambda: self.calls[actor] >= count)

    async def wait_idle(self, actor: str, limit: float = 20.0) -> None:
        """Until no call for the actor is in the air."""
        async with asyncio.timeout(limit), self._changed:
            await self._changed.wait_for(lambda: self.in_air[actor] == 0)

    # -- what the router calls

    async def ResumeActor(
        self, request: pb.ResumeActorRequest, context: grpc.aio.ServicerContext
    ) -> pb.ResumeActorResponse:
        actor = f"{request.actor.atespace}/{request.actor.name}"
        await self._enter(actor, context)
        try:
            step = self._scripts[actor].next()
            if step is None:
                raise ResumeFailedError(grpc.StatusCode.NOT_FOUND, f"actor {actor} not found")
            return await step()
        except ResumeFailedError as refusal:
            await context.abort(refusal.code, refusal.text)
            raise
        finally:
            await self._leave(actor)

    async def GetActor(
        self, request: pb.GetActorRequest, context: grpc.aio.ServicerContext
    ) -> pb.Actor:
        response = await self.ResumeActor(pb.ResumeActorRequest(actor=request.actor), context)
        return response.actor

    async def ListActors(
        self, request: pb.ListActorsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListActorsResponse:
        """The Envoy router's look at whether anybody answers."""
        return pb.ListActorsResponse()

    async def _enter(self, actor: str, context: grpc.aio.ServicerContext) -> None:
        metadata = {
            key: value
            for key, value in context.invocation_metadata() or ()
            if isinstance(value, str)
        }
        self.seen.append(SeenCall(actor, metadata, asyncio.get_running_loop().time()))
        self.calls[actor] += 1
        self.in_air[actor] += 1
        self.most_in_air[actor] = max(self.most_in_air[actor], self.in_air[actor])
        async with self._changed:
            self._changed.notify_all()

    async def _leave(self, actor: str) -> None:
        self.in_air[actor] -= 1
        async with self._changed:
            self._changed.notify_all()
