"""What a conformance test plays on: a router, a control plane, workers, and actors of its own."""

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import grpc
import grpc.aio

from tests.support import raw_http1
from tests.support.dataplanes import Dataplane, Router
from tests.support.fake_ateapi import FakeAteapi
from tests.support.grpc_origin import GrpcOrigin
from tests.support.origins import Handler, Origin
from tests.support.pki import ROUTER_NAME, Pki
from tests.support.raw_h2 import Fields, RawH2, StreamResetError
from tests.support.raw_http1 import RawHttp1, Response
from tests.support.resume_steps import Placement
from tests.support.scripted_worker import Answer, ScriptedWorker
from tests.support.websocket_origin import WebSocketOrigin
from tests.support.worker_end import Activation, WorkerEnd

_numbers = itertools.count(1)


@dataclass
class Actor:
    """An actor that runs: the worker lets it in, the control plane says where it is."""

    ref: str
    place: Placement
    activation: Activation | None = None

    @property
    def header(self) -> tuple[str, str]:
        return ("ate-target-actor", self.ref)


def new_ref() -> str:
    """A name that no other test of this session uses."""
    return f"team-{uuid.uuid4().hex[:6]}/agent-{next(_numbers)}"


class Stage:
    """Everything made through it ends with the test."""

    def __init__(
        self,
        dataplane: Dataplane,
        router: Router,
        api: FakeAteapi,
        worker: WorkerEnd,
        pki: Pki,
        stack: AsyncExitStack,
    ) -> None:
        self.dataplane = dataplane
        self.router = router
        self.api = api
        self.worker = worker
        self.pki = pki
        self._stack = stack

    # -- actors

    async def origin(
        self, handler: Handler, *, port: int = 80, address: str | None = None
    ) -> Origin:
        origin = await Origin.start(handler, port=port, address=address)
        self._stack.push_async_callback(origin.close)
        return origin

    async def grpc_origin(self) -> GrpcOrigin:
        origin = await GrpcOrigin.start()
        self._stack.push_async_callback(origin.close)
        return origin

    async def websocket_origin(self) -> WebSocketOrigin:
        origin = await WebSocketOrigin.start()
        self._stack.push_async_callback(origin.close)
        return origin

    def actor_at(
        self, address: str, *, worker: WorkerEnd | None = None, ref: str | None = None
    ) -> Actor:
        """A running actor whose ports are those of `address`."""
        worker, ref = worker or self.worker, ref or new_ref()
        activation = worker.activate(ref, address)
        actor = Actor(ref, Placement(ref, worker.ip, uid=activation.uid), activation)
        self.api.place(actor.place)
        self._stack.push_async_callback(worker.deactivate, activation)
        return actor

    async def actor(self, handler: Handler) -> tuple[Actor, Origin]:
        """A running actor with a server of its own on port 80."""
        origin = await self.origin(handler)
        return self.actor_at(origin.address), origin

    def actor_on(self, ip: str, *, ref: str | None = None, spiffe_id: str | None = None) -> Actor:
        """An actor whose assignment names a worker that the test plays itself."""
        ref = ref or new_ref()
        place = Placement(ref, ip) if spiffe_id is None else Placement(ref, ip, spiffe_id=spiffe_id)
        actor = Actor(ref, place)
        self.api.place(actor.place)
        return actor

    async def other_worker(self) -> WorkerEnd:
        """One more real worker."""
        worker = await WorkerEnd.start(self.pki)
        self._stack.push_async_callback(worker.close)
        return worker

    async def scripted_worker(self, answer: Answer, **how) -> ScriptedWorker:  # type: ignore[no-untyped-def]
        worker = await ScriptedWorker.start(self.pki, answer, **how)
        self._stack.push_async_callback(worker.close)
        return worker

    def closing(self, close: Callable[[], Awaitable[None] | None]) -> None:
        """Something of the test's own that must end with it."""

        async def end() -> None:
            outcome = close()
            if outcome is not None:
                await outcome

        self._stack.push_async_callback(end)

    # -- requests

    async def http1(self, **how) -> RawHttp1:  # type: ignore[no-untyped-def]
        connection = await RawHttp1.open(self.router.web, **how)
        self._stack.push_async_callback(connection.close)
        return connection

    async def http2(self, *, read_all: bool = True) -> RawH2:
        connection = await RawH2.open(self.router.web, read_all=read_all)
        self._stack.push_async_callback(connection.close)
        return connection

    def grpc_channel(self) -> grpc.aio.Channel:
        channel = grpc.aio.secure_channel(
            self.router.web.address,
            self.router.grpc_credentials,
            options=[("grpc.ssl_target_name_override", ROUTER_NAME), ("grpc.enable_retries", 0)],
        )
        self._stack.push_async_callback(channel.close)
        return channel

    async def ask(self, data: bytes) -> Response:
        """One raw request on a connection of its own."""
        return await raw_http1.ask(self.router.web, data)

    async def http2_status(self, fields: Fields, body: bytes | None = None) -> int:
        """The status over HTTP/2; 400 also where the stream or the connection is refused in its own way."""
        connection = await self.http2()
        try:
            return (await connection.ask(fields, body)).status
        except StreamResetError:
            return 400

    async def request(
        self,
        actor: Actor | str,
        method: str = "GET",
        path: str = "/",
        *fields: tuple[str, str],
        body: bytes | None = None,
    ) -> Response:
        """One well-formed request to an actor on a connection of its own."""
        ref = actor if isinstance(actor, str) else actor.ref
        named = [("host", "app.example"), ("ate-target-actor", ref), *fields]
        return await self.ask(raw_http1.request(method, path, *named, body=body))

    async def get(self, actor: Actor | str, path: str = "/") -> Response:
        return await self.request(actor, "GET", path)

    async def many(self, count: int, actor: Actor | str) -> list[Response]:
        """So many GETs at once."""
        return list(await asyncio.gather(*(self.get(actor) for _ in range(count))))
