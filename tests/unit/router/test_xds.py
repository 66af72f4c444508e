"""The xDS server, seen from a client that speaks as Envoy does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from atenet.errors import AteError
from atenet.router.envoy_api import DISCOVERY_REQUEST, DISCOVERY_RESPONSE, message_class
from atenet.router.resources import Snapshot, build_snapshot
from atenet.router.xds import XdsServer

from tests.support.eventually import within
from tests.unit.router.settings import settings

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
SECRET = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"


class Client:
    """One ADS stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def say(self, kind: str, **fields: Any) -> None:
        await self._stream.write(message_class(DISCOVERY_REQUEST)(type_url=kind, **fields))

    async def hear(self) -> Any:
        return await within(self._stream.read(), 5)

    async def hears_nothing(self) -> bool:
        done, _ = await asyncio.wait({asyncio.ensure_future(self._stream.read())}, timeout=0.2)
        return not done

    async def take(self, kind: str) -> None:
        await self.say(kind)
        answer = await self.hear()
        await self.say(kind, version_info=answer.version_info, response_nonce=answer.nonce)


@asynccontextmanager
async def serving(snapshot: Snapshot) -> AsyncIterator[tuple[XdsServer, Client]]:
    server = XdsServer(snapshot)
    port = await server.start(0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.stream_stream(
            METHOD,
            request_serializer=message_class(DISCOVERY_REQUEST).SerializeToString,
            response_deserializer=message_class(DISCOVERY_RESPONSE).FromString,
        )
        stream = call()
        try:
            yield server, Client(stream)
        finally:
            stream.cancel()
            await server.close()


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return build_snapshot(settings(), decisions_port=1)


async def test_a_subscription_is_answered_once_with_everything(snapshot: Snapshot) -> None:
    async with serving(snapshot) as (server, client):
        await client.say(CLUSTER)
        answer = await client.hear()
        assert (answer.version_info, len(answer.resources)) == (
            server.version,
            len(snapshot.resources[CLUSTER]),
        )
        await client.say(CLUSTER, version_info=answer.version_info, response_nonce=answer.nonce)
        assert await client.hears_nothing()


async def test_named_resources_are_the_only_ones_sent_and_more_may_be_asked_for(
    snapshot: Snapshot,
) -> None:
    async with serving(snapshot) as (_, client):
        await client.say(SECRET, resource_names=["worker-roots"])
        first = await client.hear()
        assert len(first.resources) == 1
        both = ["worker-roots", "client-roots"]
        await client.say(SECRET, resource_names=both, response_nonce=first.nonce)
        assert len((await client.hear()).resources) == 2


async def test_what_is_not_there_is_answered_empty(snapshot: Snapshot) -> None:
    async with serving(snapshot) as (_, client):
        await client.say("type.googleapis.com/envoy.config.route.v3.RouteConfiguration")
        assert len((await client.hear()).resources) == 0


async def test_it_is_accepted_when_every_kind_has_been_taken(snapshot: Snapshot) -> None:
    async with serving(snapshot) as (server, client):
        accepted = asyncio.create_task(server.accepted())
        for kind in snapshot.resources:
            assert not accepted.done()
            await client.take(kind)
        await within(accepted, 5)


async def test_some_of_the_secrets_are_not_all_of_them(snapshot: Snapshot) -> None:
    async with serving(snapshot) as (server, client):
        for kind in snapshot.resources.keys() - {SECRET}:
            await client.take(kind)
        names = sorted(snapshot.resources[SECRET])
        for asked in (names[:1], names):
            assert not server.is_accepted
            await client.say(SECRET, resource_names=asked)
            answer = await client.hear()
            await client.say(SECRET, resource_names=asked, response_nonce=answer.nonce)
        await within(server.accepted(), 5)
        assert server.is_accepted


async def test_a_refusal_is_an_error_with_envoys_own_words(snapshot: Snapshot) -> None:
    async with serving(snapshot) as (server, client):
        await client.say(CLUSTER)
        answer = await client.hear()
        words = {"code": 3, "message": "no such directory: /nowhere"}
        await client.say(CLUSTER, response_nonce=answer.nonce, error_detail=words)
        with pytest.raises(AteError, match="refused its Cluster resources: no such directory"):
            await within(server.accepted(), 5)


async def test_a_version_never_repeats(snapshot: Snapshot) -> None:
    servers = [XdsServer(snapshot) for _ in range(20)]
    assert len({server.version for server in servers}) == 20
    for server in servers:
        await server.close()


async def test_a_taken_port_is_named(snapshot: Snapshot) -> None:
    async with serving(snapshot):
        blocker = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = blocker.sockets[0].getsockname()[1]
        second = XdsServer(snapshot)
        with pytest.raises(AteError, match=f"--port-xds: cannot listen on 127.0.0.1:{port}"):
            await second.start(port)
        await second.close()
        blocker.close()
        await blocker.wait_closed()
