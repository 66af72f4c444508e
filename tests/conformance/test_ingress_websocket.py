"""WebSocket through the router, and what else an Upgrade must not do."""

import asyncio
import base64
import hashlib
import json

import pytest
import websockets.asyncio.client as ws
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support import raw_h2
from tests.support.eventually import eventually
from tests.support.origins import Exchange, answering, echo
from tests.support.pki import ROUTER_NAME
from tests.support.raw_h2 import RawH2, StreamResetError
from tests.support.raw_http1 import request
from tests.support.resume_steps import no_room, resumed
from tests.support.stage import Actor, Stage

UPGRADE = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
]


def dial(stage: Stage, actor: Actor) -> ws.connect:
    web = stage.router.web
    assert web.tls is not None
    return ws.connect(
        f"wss://{web.address}/socket?x=1",
        ssl=web.tls(["http/1.1"]),
        server_hostname=ROUTER_NAME,
        additional_headers={"ate-target-actor": actor.ref},
        proxy=None,
        ping_interval=None,
    )


@pytest.mark.conformance("I-09")
async def test_text_and_binary_pass_both_ways(stage: Stage) -> None:
    # B005
    origin = await stage.websocket_origin()
    async with dial(stage, stage.actor_at(origin.address)) as socket:
        for message in ["one", "two", "three", b"\0\1\2", "x" * 100_000]:
            await socket.send(message)
            assert await socket.recv() == message
    assert "ate-target-actor" not in {name.lower() for name, _ in origin.request_headers[0]}


@pytest.mark.conformance("I-09")
async def test_a_ping_is_answered_by_the_actor(stage: Stage) -> None:
    origin = await stage.websocket_origin()
    async with dial(stage, stage.actor_at(origin.address)) as socket, asyncio.timeout(20):
        await (await socket.ping())


@pytest.mark.conformance("I-09")
async def test_the_clients_close_code_reaches_the_actor(stage: Stage) -> None:
    # B005
    origin = await stage.websocket_origin()
    socket = await dial(stage, stage.actor_at(origin.address))
    await socket.close(4321, "bye")
    await eventually(lambda: bool(origin.closed_with))
    assert origin.closed_with == [4321]


@pytest.mark.conformance("I-09")
async def test_the_actors_close_code_reaches_the_client(stage: Stage) -> None:
    # B005
    origin = await stage.websocket_origin()
    async with dial(stage, stage.actor_at(origin.address)) as socket:
        await socket.send("close:4567")
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert (socket.close_code, socket.close_reason) == (4567, "as told")


@pytest.mark.conformance("I-09")
async def test_a_handshake_wakes_a_sleeping_actor(stage: Stage) -> None:
    # B005: also when the actor was suspended at the time of the GET.
    origin = await stage.websocket_origin()
    actor = stage.actor_at(origin.address)
    stage.api.script(actor.ref, no_room(), resumed(actor.place, after=0.2))
    async with dial(stage, actor) as socket:
        await socket.send("awake")
        assert await socket.recv() == "awake"


@pytest.mark.conformance("I-09")
async def test_an_actor_that_refuses_the_upgrade_is_heard(stage: Stage) -> None:
    actor, _ = await stage.actor(answering(403, b"no sockets here"))
    with pytest.raises(InvalidStatus) as refusal:
        await dial(stage, actor)
    assert refusal.value.response.status_code == 403
    assert refusal.value.response.body == b"no sockets here"


@pytest.mark.conformance("I-09", "I-12")
async def test_an_h2c_upgrade_is_not_forwarded(stage: Stage) -> None:
    # B008
    actor, origin = await stage.actor(echo)
    answer = await stage.request(
        actor,
        "GET",
        "/",
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABk"),
    )
    assert answer.status == 200
    assert not {"upgrade", "http2-settings"} & origin.heads[0].names


@pytest.mark.conformance("I-09")
async def test_a_list_of_upgrades_forwards_none_but_websocket(stage: Stage) -> None:
    # B008: an allow list, not a block list.
    actor, origin = await stage.actor(echo)
    answer = await stage.request(
        actor, "GET", "/", ("connection", "upgrade"), ("upgrade", "TLS/1.0, h2c, foo/2")
    )
    assert answer.status in (200, 400)
    assert all("upgrade" not in head.names for head in origin.heads)


@pytest.mark.conformance("I-09")
async def test_bytes_behind_an_upgrade_that_was_not_taken_are_a_new_request(stage: Stage) -> None:
    # B011: one segment; the second request names another actor.
    first, first_origin = await stage.actor(answering(200, b"no upgrade"))
    second, second_origin = await stage.actor(answering(200, b"second"))
    connection = await stage.http1()
    await connection.send(
        request("GET", "/one", ("host", "a"), first.header, *UPGRADE)
        + request("GET", "/two", ("host", "a"), second.header)
    )
    assert (await connection.response()).data == b"no upgrade"
    assert (await connection.response()).data == b"second"
    assert [head.target for head in first_origin.heads] == ["/one"]
    assert [head.target for head in second_origin.heads] == ["/two"]


@pytest.mark.conformance("I-09", "I-12")
async def test_upgrade_fields_inside_http2_never_become_a_plain_get(stage: Stage) -> None:
    # B006
    actor, origin = await stage.actor(echo)
    status = await stage.http2_status(raw_h2.get("/", actor.ref, *UPGRADE))
    assert (status, origin.exchanges) == (400, [])


# -- RFC 8441


def extended(actor: Actor, protocol: str = "websocket") -> list[tuple[str, str]]:
    pseudo = [(":method", "CONNECT"), (":protocol", protocol)]
    rest = [(":scheme", "https"), (":authority", "app.example"), (":path", "/chat?x=1")]
    return [*pseudo, *rest, actor.header, ("sec-websocket-version", "13")]


def frame(opcode: int, payload: bytes) -> bytes:
    """A small client frame, masked with zeros."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + b"\0\0\0\0" + payload


async def offered(stage: Stage) -> RawH2:
    connection = await stage.http2()
    await connection.wait(lambda: connection.h2.remote_settings.enable_connect_protocol == 1)
    return connection


@pytest.mark.conformance("I-10")
@pytest.mark.only("agentgateway")
async def test_websocket_over_http2_is_offered_and_bridged(stage: Stage) -> None:
    # B006
    origin = await stage.websocket_origin()
    actor = stage.actor_at(origin.address)
    connection = await offered(stage)
    stream = await connection.start(extended(actor), end=False)
    assert (await connection.head(stream)).status == 200
    assert "sec-websocket-accept" not in dict(stream.headers or [])
    await connection.send(stream, frame(1, b"hello"))
    await connection.wait(lambda: bytes(stream.data) == b"\x81\x05hello")
    await connection.send(stream, frame(8, (4321).to_bytes(2, "big")))
    await connection.wait(lambda: len(stream.data) >= 11)
    assert stream.data[7:] == b"\x88\x02" + (4321).to_bytes(2, "big")
    seen = {name.lower(): value for name, value in origin.request_headers[0]}
    assert seen["upgrade"].lower() == "websocket"
    assert seen["host"] == "app.example"


@pytest.mark.conformance("I-10")
@pytest.mark.only("agentgateway")
async def test_an_actors_refusal_of_the_bridged_upgrade_comes_through(stage: Stage) -> None:
    actor, origin = await stage.actor(answering(404, b"no such socket"))
    connection = await offered(stage)
    stream = await connection.start(extended(actor), end=False)
    assert (await connection.head(stream)).status == 404
    assert origin.heads[0].target == "/chat?x=1"


@pytest.mark.conformance("I-10")
@pytest.mark.only("agentgateway")
async def test_a_wrong_accept_hash_is_no_websocket(stage: Stage) -> None:
    # B006: the accept hash is checked.
    async def liar(exchange: Exchange) -> None:
        wrong = base64.b64encode(hashlib.sha1(b"something else").digest()).decode()
        await exchange.send(
            b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            b"sec-websocket-accept: " + wrong.encode() + b"\r\n\r\n"
        )
        await exchange.reader.read()
        exchange.keep_alive = False

    actor, _ = await stage.actor(liar)
    connection = await offered(stage)
    stream = await connection.start(extended(actor), end=False)
    assert (await connection.head(stream)).status == 502


@pytest.mark.conformance("I-10")
@pytest.mark.only("agentgateway")
async def test_another_protocol_over_extended_connect_is_refused(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    connection = await offered(stage)
    stream = await connection.start(extended(actor, "connect-udp"), end=False)
    try:
        status = (await connection.head(stream)).status
    except StreamResetError:
        status = 400
    assert 400 <= status <= 501
    assert origin.exchanges == []


@pytest.mark.conformance("I-10")
@pytest.mark.only("agentgateway")
async def test_ordinary_requests_run_beside_a_websocket_on_one_connection(stage: Stage) -> None:
    origin = await stage.websocket_origin()
    socket_actor = stage.actor_at(origin.address)
    plain_actor, _ = await stage.actor(echo)
    connection = await offered(stage)
    stream = await connection.start(extended(socket_actor), end=False)
    await connection.head(stream)
    answer = await connection.ask(raw_h2.get("/beside", plain_actor.ref))
    assert json.loads(bytes(answer.data))["start"] == "GET /beside HTTP/1.1"
    await connection.send(stream, frame(1, b"still"))
    await connection.wait(lambda: bytes(stream.data) == b"\x81\x05still")
