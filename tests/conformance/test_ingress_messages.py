"""HTTP semantics survive the way: methods, statuses, interim answers, trailers, body framing."""

import json

import pytest

from tests.support import raw_h2
from tests.support.eventually import eventually
from tests.support.http1_message import LAST_CHUNK, chunk
from tests.support.origins import Exchange, answering, echo, sending
from tests.support.raw_http1 import request
from tests.support.resume_steps import no_room, resumed
from tests.support.stage import Stage

pytestmark = pytest.mark.conformance("I-11")


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "M-SEARCH"]
)
async def test_the_method_reaches_the_actor(stage: Stage, method: str) -> None:
    actor, origin = await stage.actor(echo)
    assert (await stage.request(actor, method, "/")).status == 200
    assert origin.heads[0].method == method


@pytest.mark.parametrize(
    "status", [200, 201, 206, 301, 307, 400, 404, 418, 421, 429, 500, 503, 599]
)
async def test_the_actors_status_and_body_come_through(stage: Stage, status: int) -> None:
    actor, _ = await stage.actor(answering(status, b"the actor's own words", ("x-own", "1")))
    answer = await stage.get(actor)
    assert (answer.status, answer.data, answer.head.get("x-own")) == (
        status,
        b"the actor's own words",
        "1",
    )


async def test_repeated_response_fields_stay_apart_and_in_order(stage: Stage) -> None:
    actor, _ = await stage.actor(
        answering(200, b"", ("set-cookie", "a=1"), ("set-cookie", "b=2; path=/"))
    )
    assert (await stage.get(actor)).head.all("set-cookie") == ["a=1", "b=2; path=/"]


async def test_cookies_split_by_http2_reach_an_http1_actor_as_one_field(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    await (await stage.http2()).ask(
        raw_h2.get("/", actor.ref, ("cookie", "a=1"), ("cookie", "b=2"))
    )
    assert origin.heads[0].all("cookie") == ["a=1; b=2"]


async def test_head_keeps_its_length_and_has_no_body(stage: Stage) -> None:
    async def head_only(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n")

    actor, _ = await stage.actor(head_only)
    connection = await stage.http1()
    for _ in range(2):
        answer = await connection.ask(request("HEAD", "/", ("host", "a"), actor.header))
        assert (answer.status, answer.head.get("content-length")) == (200, "1234")


async def test_head_over_http2_ends_with_its_head(stage: Stage) -> None:
    actor, _ = await stage.actor(sending(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n"))
    answer = await (await stage.http2()).ask(raw_h2.fields("HEAD", "/", actor.ref))
    assert (answer.status, answer.get("content-length"), bytes(answer.data)) == (200, "1234", b"")


@pytest.mark.parametrize(
    "head",
    [
        b"204 No Content",
        b'304 Not Modified\r\netag: "x"',
        b"304 Not Modified\r\ncontent-length: 99",
    ],
    ids=["204", "304", "304 with a length"],
)
async def test_an_answer_without_a_body_leaves_the_connection_usable(
    stage: Stage, head: bytes
) -> None:
    actor, _ = await stage.actor(sending(b"HTTP/1.1 " + head + b"\r\n\r\n"))
    connection = await stage.http1()
    for _ in range(2):
        answer = await connection.ask(request("GET", "/", ("host", "a"), actor.header))
        assert (answer.status, answer.data) == (int(head[:3]), b"")


async def test_early_hints_pass_before_the_answer(stage: Stage) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n"
    actor, _ = await stage.actor(sending(hints + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    interim = await connection.head()
    assert (interim.status, interim.get("link")) == (103, "</style.css>; rel=preload")
    assert (await connection.response()).data == b"ok"


async def test_early_hints_pass_over_http2(stage: Stage) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n"
    actor, _ = await stage.actor(sending(hints + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
    answer = await (await stage.http2()).ask(raw_h2.get("/", actor.ref))
    assert [dict(interim)[":status"] for interim in answer.interim] == ["103"]
    assert (answer.status, bytes(answer.data)) == (200, b"ok")


async def test_an_http1_1_client_gets_chunks_and_trailers(stage: Stage) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n"
    actor, _ = await stage.actor(
        sending(head + chunk(b"one") + chunk(b"two") + b"0\r\nx-sum: 42\r\n\r\n")
    )
    answer = await stage.request(actor, "GET", "/", ("te", "trailers"))
    assert (answer.data, answer.body.trailers) == (b"onetwo", [("x-sum", "42")])


async def test_an_http2_client_gets_trailers(stage: Stage) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n"
    actor, _ = await stage.actor(sending(head + chunk(b"one") + b"0\r\nx-sum: 42\r\n\r\n"))
    answer = await (await stage.http2()).ask(raw_h2.get("/", actor.ref, ("te", "trailers")))
    assert (bytes(answer.data), answer.trailers) == (b"one", [("x-sum", "42")])


async def test_request_trailers_reach_the_actor(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    answer = await stage.ask(
        request(
            "POST",
            "/",
            ("host", "a"),
            actor.header,
            ("transfer-encoding", "chunked"),
            ("trailer", "x-sum"),
        )
        + chunk(b"body")
        + b"0\r\nx-sum: 42\r\n\r\n"
    )
    told = json.loads(answer.data)
    assert (told["body"], told["trailers"]) == ("body", [["x-sum", "42"]])


async def test_http2_request_trailers_reach_the_actor(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    connection = await stage.http2()
    stream = await connection.start(raw_h2.fields("POST", "/", actor.ref), end=False)
    await connection.send(stream, b"body")
    await connection.send_trailers(stream, [("x-sum", "42")])
    told = json.loads(bytes((await connection.response(stream)).data))
    assert (told["body"], told["trailers"]) == ("body", [["x-sum", "42"]])


async def test_a_length_framed_upload_stays_length_framed(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    answer = await stage.request(actor, "POST", "/", body=b"x" * 100_000)
    assert json.loads(answer.data)["body"] == "x" * 100_000
    assert (origin.heads[0].length, origin.heads[0].chunked) == (100_000, False)


async def test_a_chunked_upload_arrives_whole(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    pieces = [b"x" * size for size in (1, 1000, 70_000)]
    answer = await stage.ask(
        request("POST", "/", ("host", "a"), actor.header, ("transfer-encoding", "chunked"))
        + b"".join(chunk(piece) for piece in pieces)
        + LAST_CHUNK
    )
    assert json.loads(answer.data)["body"] == "x" * 71_001
    assert origin.heads[0].chunked


async def test_an_http2_upload_without_a_length_arrives_whole(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    answer = await (await stage.http2()).ask(raw_h2.fields("POST", "/", actor.ref), b"y" * 200_000)
    assert json.loads(bytes(answer.data))["body"] == "y" * 200_000


async def test_an_empty_post_has_an_empty_body(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    assert json.loads((await stage.request(actor, "POST", "/", body=b"")).data)["body"] == ""
    assert origin.heads[0].get("content-length") == "0"


async def test_pipelined_requests_are_answered_in_order(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    connection = await stage.http1()
    await connection.send(
        b"".join(request("GET", f"/{n}", ("host", "a"), actor.header) for n in range(5))
    )
    for number in range(5):
        assert json.loads((await connection.response()).data)["start"] == f"GET /{number} HTTP/1.1"


async def test_an_http1_0_client_gets_an_answer_that_ends_with_the_connection(stage: Stage) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    actor, _ = await stage.actor(sending(head + chunk(b"one") + chunk(b"two") + LAST_CHUNK))
    connection = await stage.http1()
    await connection.send(
        b"GET / HTTP/1.0\r\nhost: a\r\nate-target-actor: " + actor.ref.encode() + b"\r\n\r\n"
    )
    answer = await connection.response()
    assert (answer.status, answer.head.chunked, answer.data) == (200, False, b"onetwo")


async def test_connection_close_is_honoured(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    connection = await stage.http1()
    answer = await connection.ask(
        request("GET", "/", ("host", "a"), actor.header, ("connection", "close"))
    )
    assert answer.head.get("connection") == "close"
    assert await connection.rest() == b""


# -- Expect: 100-continue (B013)


async def _polite(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    await echo(exchange)


@pytest.mark.parametrize(
    "handler", [_polite, echo], ids=["the actor says 100", "the actor says nothing"]
)
async def test_a_client_that_waits_for_100_is_let_through_to_a_sleeping_actor(
    stage: Stage, handler
) -> None:  # type: ignore[no-untyped-def]
    # B013: the body is held until an interim response arrives.
    actor, _ = await stage.actor(handler)
    stage.api.script(actor.ref, no_room(), resumed(actor.place, after=0.2))
    connection = await stage.http1()
    await connection.send(
        request(
            "POST",
            "/",
            ("host", "a"),
            actor.header,
            ("expect", "100-continue"),
            ("content-length", "2048"),
        )
    )
    assert (await connection.head()).status == 100
    await connection.send(b"z" * 2048)
    answer = await connection.response()
    assert json.loads(answer.data)["body"] == "z" * 2048


async def test_an_early_refusal_comes_without_the_body_being_read(stage: Stage) -> None:
    # B013
    async def too_large(exchange: Exchange) -> None:
        await exchange.answer(413, b"too large", ("connection", "close"))
        exchange.keep_alive = False

    actor, _ = await stage.actor(too_large)
    connection = await stage.http1()
    await connection.send(
        request(
            "POST",
            "/",
            ("host", "a"),
            actor.header,
            ("expect", "100-continue"),
            ("content-length", "2048"),
        )
    )
    answer = await connection.response()
    assert (answer.status, answer.data) == (413, b"too large")


async def test_a_refusal_of_ours_does_not_wait_for_the_body(stage: Stage) -> None:
    # B013
    connection = await stage.http1()
    await connection.send(
        request(
            "POST",
            "/",
            ("host", "a"),
            ("ate-target-actor", "no/body"),
            ("expect", "100-continue"),
            ("content-length", "9"),
        )
    )
    assert (await connection.head()).status == 404


async def test_an_answer_before_the_end_of_the_upload_comes_through(stage: Stage) -> None:
    async def hasty(exchange: Exchange) -> None:
        await exchange.answer(200, b"enough")
        await exchange.read_body()

    actor, origin = await stage.actor(hasty)
    connection = await stage.http2()
    stream = await connection.start(raw_h2.fields("POST", "/", actor.ref), end=False)
    await connection.send(stream, b"first")
    assert (await connection.head(stream)).status == 200
    await connection.send(stream, b"second", end=True)
    await eventually(lambda: origin.exchanges[0].body is not None)
    assert origin.exchanges[0].body == b"firstsecond"
