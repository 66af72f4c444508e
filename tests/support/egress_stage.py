"""What an egress test plays on: a gateway, actors with policies, names, origins, tunnels."""

import asyncio
import contextlib
import itertools
import ssl
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
from atenet.denials.client import fetch_denials
from atenet.denials.denial import Denial

from tests.support.egress_api import EgressApi, Provider
from tests.support.egress_capture import Capture
from tests.support.egress_gateway import EgressGateway
from tests.support.egress_pki import GATEWAY_NAME, EgressPki
from tests.support.endpoint import Endpoint
from tests.support.grpc_origin import GrpcOrigin
from tests.support.h2_origin import H2Origin
from tests.support.http1_message import Body, read_response_body
from tests.support.name_server import NameServer
from tests.support.origins import Handler, Origin
from tests.support.raw_http1 import RawHttp1, Response, request

# What actors believe the names' address to be; nothing listens there.
DIALLED = "203.0.113.9"
_numbers = itertools.count(1)


class EgressStage:
    """Everything made here is closed with the stack."""

    def __init__(
        self,
        gateway: EgressGateway,
        api: EgressApi,
        provider: Provider,
        names: NameServer,
        pki: EgressPki,
        stack: AsyncExitStack,
    ) -> None:
        self.gateway = gateway
        self.api = api
        self.provider = provider
        self.names = names
        self.pki = pki
        self._stack = stack

    # -- who and where

    def actor(self, *rules: dict[str, Any], **settings: Any) -> str:
        """A running actor with these rules; no rule: no policy."""
        actor = f"team/actor-{next(_numbers)}"
        self.api.put(actor, **settings)
        if rules:
            self.api.allow(actor, *rules)
        return actor

    def name(self, *addresses: str) -> str:
        """A name of its own that resolves to these addresses."""
        name = f"host-{next(_numbers)}.test.example"
        self.names.names[name] = [list(addresses)]
        return name

    async def origin(self, handler: Handler, *, port: int = 0, **start: Any) -> Origin:
        origin = await Origin.start(handler, port=port, **start)
        self._stack.push_async_callback(origin.close)
        return origin

    async def web(self, handler: Handler, **start: Any) -> tuple[str, Origin]:
        """A cleartext origin and its name."""
        origin = await self.origin(handler, **start)
        return self.name(origin.address), origin

    async def secure_web(
        self, handler: Handler, *, tls: ssl.SSLContext | None = None, **start: Any
    ) -> tuple[str, Origin]:
        """A TLS origin and its name, which its certificate carries unless `tls` is another."""
        name = self.name()
        tls = tls or self.pki.origin_server(name)
        origin = await self.origin(handler, tls=tls, **start)
        self.names.names[name] = [[origin.address]]
        return name, origin

    async def http2_web(self) -> tuple[str, H2Origin]:
        """A TLS origin that speaks HTTP/2 alone, and its name."""
        name = self.name("127.0.0.1")
        origin = await H2Origin.start(self.pki.origin_server(name))
        self._stack.push_async_callback(origin.close)
        return name, origin

    async def grpc_service(self) -> tuple[str, GrpcOrigin, int]:
        """A gRPC server over TLS: its name, itself, its port."""
        name = self.name("127.0.0.1")
        origin, port = await GrpcOrigin.start_tls(self.pki.origins.issue(dns=[name]))
        self._stack.push_async_callback(origin.close)
        return name, origin, port

    async def grpc_channel(self, actor: str, name: str, port: int) -> grpc.aio.Channel:
        """An actor's channel to that name; it trusts the interception authority only."""
        local = await self.capture(actor, port)
        credentials = grpc.ssl_channel_credentials(self.pki.interception.pem)
        options = [("grpc.ssl_target_name_override", name), ("grpc.default_authority", name)]
        channel = grpc.aio.secure_channel(f"127.0.0.1:{local}", credentials, options=options)
        self._stack.push_async_callback(channel.close)
        return channel

    # -- tunnels

    async def worker(self, credential: ssl.SSLContext) -> RawHttp1:
        """A connection to the gateway, before any CONNECT."""
        endpoint = Endpoint(
            self.gateway.host, self.gateway.port, lambda _alpn: credential, GATEWAY_NAME
        )
        wire = await RawHttp1.open(endpoint)
        self._stack.push_async_callback(_close, wire)
        return wire

    async def connect(
        self, actor: str, port: int, *fields: tuple[str, str], address: str = DIALLED
    ) -> tuple[RawHttp1, Response]:
        """A tunnel of the actor's worker, and how the CONNECT was answered."""
        wire = await self.worker(self.pki.tunnel_client(actor))
        target = f"{address}:{port}"
        await wire.send(request("CONNECT", target, ("host", target), *fields))
        head = await wire.head()
        if head.status == 200:
            return wire, Response(head, Body(b""))
        return wire, Response(head, await read_response_body(head, wire.reader, method="GET"))

    async def tunnel(self, actor: str, port: int, **more: Any) -> RawHttp1:
        wire, answer = await self.connect(actor, port, **more)
        assert answer.status == 200, answer
        return wire

    async def tls(
        self, actor: str, name: str, port: int, context: ssl.SSLContext | None = None
    ) -> RawHttp1:
        """TLS inside a tunnel; by default as an actor that trusts the interception authority."""
        made = context or self.pki.actor_client()
        local = await self.capture(actor, port)
        wire = await RawHttp1.open(Endpoint("127.0.0.1", local, lambda _alpn: made, name))
        self._stack.push_async_callback(_close, wire)
        return wire

    async def capture(self, actor: str, port: int) -> int:
        """A local port of which every connection leaves through a tunnel of the actor to `port`."""
        capture = await Capture(lambda: self.tunnel(actor, port)).start()
        self._stack.push_async_callback(capture.close)
        return capture.port

    async def get(
        self, actor: str, origin_port: int, host: str, *fields: tuple[str, str]
    ) -> Response:
        """One cleartext request."""
        wire = await self.tunnel(actor, origin_port)
        return await wire.ask(request("GET", "/", ("host", host), *fields))

    async def get_secure(
        self, actor: str, origin_port: int, host: str, *fields: tuple[str, str]
    ) -> Response:
        """One request in intercepted TLS."""
        wire = await self.tls(actor, host, origin_port)
        return await wire.ask(request("GET", "/", ("host", host), *fields))

    async def recent(self, actor: str) -> list[Denial]:
        """What the gateway tells people of what it denied to the actor, newest first."""
        person = self.pki.person()
        return await asyncio.to_thread(
            fetch_denials, self.gateway.denials, GATEWAY_NAME, actor, person
        )

    def denials(self, actor: str) -> list[dict[str, Any]]:
        """The gateway's log lines of what was denied to the actor."""
        records = self.gateway.process.log_records()
        return [r for r in records if r.get("actor") == actor and r.get("reason") is not None]


async def _close(wire: RawHttp1) -> None:
    with contextlib.suppress(ssl.SSLError, OSError):
        await wire.close()


def http(*hostnames: str, ports: Any = None, **effects: Any) -> dict[str, Any]:
    return {"http": _rule(hostnames, ports, effects)}


def https(*hostnames: str, ports: Any = None, **effects: Any) -> dict[str, Any]:
    return {"https": _rule(hostnames, ports, effects)}


def passthrough(*hostnames: str, ports: Any) -> dict[str, Any]:
    return {"tlsPassthrough": _rule(hostnames, ports, {})}


def _rule(hostnames: Any, ports: Any, effects: dict[str, Any]) -> dict[str, Any]:
    rule: dict[str, Any] = {"hostnames": list(hostnames)}
    if ports is not None:
        rule["ports"] = {"all": {}} if ports == "all" else {"numbers": list(ports)}
    if effects:
        rule["effects"] = effects
    return rule
