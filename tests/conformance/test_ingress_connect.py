"""CONNECT: another port of the actor, and a long-lived tunnel that follows it."""

import pytest

from tests.support import raw_h2
from tests.support.endpoint import Endpoint
from tests.support.origins import answering, echo
from tests.support.raw_h2 import RawH2
from tests.support.raw_http1 import RawHttp1, Response, request
from tests.support.stage import Actor, Stage

PORT = 9292


def connect(authority: str, *fields: tuple[str, str]) -> bytes:
    return request("CONNECT", authority, ("host", authority), *fields)


async def tunnel(
    stage: Stage, actor: Actor, port: int = PORT, *, endpoint: Endpoint | None = None
) -> RawHttp1:
    """An open CONNECT; what is sent next travels inside."""
    connection = await RawHttp1.open(endpoint or stage.router.connect)
    stage.closing(connection.close)
    await connection.send(connect(f"anything:{port}", actor.header))
    assert (await connection.head()).status == 200
    return connection


async def refused(stage: Stage, data: bytes, *, endpoint: Endpoint | None = None) -> Response:
    connection = await RawHttp1.open(endpoint or stage.router.connect)
    stage.closing(connection.close)
    await connection.send(data)
    # A refused CONNECT has an ordinary body, which the method would hide.
    return await connection.response(method="GET")


@pytest.mark.conformance("I-06")
async def test_the_authoritys_port_is_the_actors_port(stage: Stage) -> None:
    actor, default = await stage.actor(answering(500))
    other = await stage.origin(echo, port=PORT, address=default.address)
    answer = await (await tunnel(stage, actor)).ask(
        request("GET", "/inside", ("host", "inner.example:1"))
    )
    assert answer.status == 200
    assert (other.heads[0].target, other.heads[0].get("host")) == ("/inside", "inner.example:1")
    assert default.exchanges == []


@pytest.mark.conformance("I-06")
@pytest.mark.only("agentgateway")
async def test_plaintext_connect_reaches_the_port_too(stage: Stage) -> None:
    actor, default = await stage.actor(answering(500))
    other = await stage.origin(echo, port=PORT, address=default.address)
    inside = await tunnel(stage, actor, endpoint=stage.router.plain_connect)
    assert (await inside.ask(request("GET", "/", ("host", "a")))).status == 200
    assert len(other.exchanges) == 1


@pytest.mark.conformance("I-06")
async def test_many_requests_travel_inside_one_connect(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    inside = await tunnel(stage, actor, 80)
    for number in range(5):
        answer = await inside.ask(request("POST", f"/{number}", ("host", "a"), body=b"x" * number))
        assert answer.status == 200


@pytest.mark.conformance("I-06")
async def test_http2_travels_inside_a_connect(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    async with await RawH2.over(await tunnel(stage, actor, 80)) as inside:
        fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/two")]
        answers = [await inside.ask(fields) for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    assert {head.target for head in origin.heads} == {"/two"}


@pytest.mark.conformance("I-06")
async def test_a_connect_over_http2_carries_http1_inside(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    async with await RawH2.open(stage.router.connect) as outer:
        opened = await outer.start(
            [(":method", "CONNECT"), (":authority", "x:80"), actor.header], end=False
        )
        assert (await outer.head(opened)).status == 200
        await outer.send(opened, request("GET", "/", ("host", "a"), ("connection", "close")))
        await outer.wait(lambda: b"HTTP/1.1 200" in opened.data)
    assert opened.data.startswith(b"HTTP/1.1 200")


@pytest.mark.conformance("I-06", "I-13")
async def test_a_long_lived_tunnel_follows_an_actor_that_moves(stage: Stage) -> None:
    actor, _ = await stage.actor(answering(200, b"first"))
    second = await stage.origin(answering(200, b"second"))
    inside = await tunnel(stage, actor, 80)
    assert (await inside.ask(request("GET", "/", ("host", "a")))).data == b"first"

    elsewhere = await stage.other_worker()
    assert actor.activation is not None
    elsewhere.activate(actor.ref, second.address, uid=actor.activation.uid)
    await stage.worker.deactivate(actor.activation)
    stage.api.place(actor.place.moved(elsewhere.ip))

    assert (await inside.ask(request("GET", "/", ("host", "a")))).data == b"second"


@pytest.mark.conformance("I-06", "I-04")
async def test_an_inner_header_does_not_override_the_connects(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    other, bystander = await stage.actor(echo)
    inside = await tunnel(stage, actor, 80)
    assert (await inside.ask(request("GET", "/", ("host", "a"), other.header))).status == 200
    assert (len(origin.exchanges), bystander.exchanges) == (1, [])
    assert "ate-target-actor" not in origin.heads[0].names


@pytest.mark.conformance("I-06")
@pytest.mark.parametrize(
    "authority", ["host", "host:", "host:0", "host:65536", "host:http", "host:-1", "host:80x"]
)
async def test_a_connect_without_a_usable_port_is_400(stage: Stage, authority: str) -> None:
    actor, origin = await stage.actor(echo)
    before = stage.api.total
    answer = await refused(stage, connect(authority, actor.header))
    assert answer.status == 400
    assert (stage.api.total, origin.exchanges) == (before, [])


@pytest.mark.conformance("I-06", "I-01")
@pytest.mark.parametrize(
    "fields", [[], [("ate-target-actor", "demo")]], ids=["absent", "malformed"]
)
async def test_a_connect_that_names_nobody_is_404(
    stage: Stage, fields: list[tuple[str, str]]
) -> None:
    before = stage.api.total
    answer = await refused(stage, connect("host:80", *fields))
    assert (answer.status, answer.head.get("ate-reason")) == (404, "bad-target")
    assert stage.api.total == before


@pytest.mark.conformance("I-06", "I-02")
async def test_a_connect_with_the_header_twice_is_404(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    assert (await refused(stage, connect("host:80", actor.header, actor.header))).status == 404


@pytest.mark.conformance("I-06")
async def test_bytes_sent_with_the_connect_are_delivered(stage: Stage) -> None:
    # B065: one segment holds the CONNECT and the first inner request.
    actor, _ = await stage.actor(echo)
    connection = await RawHttp1.open(stage.router.connect)
    stage.closing(connection.close)
    await connection.send(connect("x:80", actor.header) + request("GET", "/early", ("host", "a")))
    assert (await connection.head()).status == 200
    answer = await connection.response()
    assert answer.status == 200
    assert b"/early" in answer.data


@pytest.mark.conformance("I-06")
async def test_data_right_behind_an_http2_connect_is_delivered(stage: Stage) -> None:
    # B065: HEADERS and DATA back to back.
    actor, _ = await stage.actor(echo)
    async with await RawH2.open(stage.router.connect) as outer:
        opened = await outer.start(
            [(":method", "CONNECT"), (":authority", "x:80"), actor.header], end=False
        )
        await outer.send(opened, request("GET", "/early", ("host", "a")))
        await outer.wait(lambda: b"/early" in opened.data)
    assert opened.status == 200


@pytest.mark.conformance("I-06")
async def test_an_unknown_actors_requests_inside_are_404(stage: Stage) -> None:
    connection = await RawHttp1.open(stage.router.connect)
    stage.closing(connection.close)
    await connection.send(connect("x:80", ("ate-target-actor", "nobody/here")))
    refusal = await connection.head()
    if refusal.status == 200:
        # The look-up may belong to the request inside; the answer is the same.
        refusal = (await connection.ask(request("GET", "/", ("host", "a")))).head
    assert (refusal.status, refusal.get("ate-reason")) == (404, "actor-not-found")


@pytest.mark.conformance("I-07")
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_anything_but_connect_on_a_connect_listener_is_405(stage: Stage, method: str) -> None:
    actor, origin = await stage.actor(echo)
    answer = await refused(stage, request(method, "/", ("host", "a"), actor.header))
    assert (answer.status, origin.exchanges) == (405, [])


@pytest.mark.conformance("I-07")
async def test_anything_but_connect_over_http2_on_a_connect_listener_is_405(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    async with await RawH2.open(stage.router.connect) as connection:
        assert (await connection.ask(raw_h2.get("/", actor.ref))).status == 405


@pytest.mark.conformance("I-07")
async def test_a_connect_on_a_direct_listener_is_405(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    answer = await refused(stage, connect("x:80", actor.header), endpoint=stage.router.web)
    assert (answer.status, origin.exchanges) == (405, [])


@pytest.mark.conformance("I-07")
async def test_a_connect_over_http2_on_a_direct_listener_is_405(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    connection = await stage.http2()
    opened = await connection.start(
        [(":method", "CONNECT"), (":authority", "x:80"), actor.header], end=False
    )
    assert (await connection.head(opened)).status == 405
