"""Framing attacks are refused, and hop-by-hop fields stay on their hop."""

import json

import pytest

from tests.support import raw_h2
from tests.support.origins import Exchange, echo
from tests.support.raw_http1 import request
from tests.support.stage import Actor, Stage

SMUGGLE = b"GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"


def raw(actor: Actor, head: bytes, body: bytes = b"") -> bytes:
    named = b"ate-target-actor: " + actor.ref.encode() + b"\r\n"
    return b"POST /attack HTTP/1.1\r\nhost: a\r\n" + named + head + b"\r\n" + body


ATTACKS: dict[str, tuple[bytes, bytes]] = {
    "length and chunked": (
        b"content-length: 6\r\ntransfer-encoding: chunked\r\n",
        b"0\r\n\r\nX" + SMUGGLE,
    ),
    "chunked and length": (
        b"transfer-encoding: chunked\r\ncontent-length: 6\r\n",
        b"0\r\n\r\nX" + SMUGGLE,
    ),
    "two lengths that differ": (b"content-length: 5\r\ncontent-length: 6\r\n", b"hello!"),
    "two equal lengths": (b"content-length: 5\r\ncontent-length: 5\r\n", b"hello"),
    "a list of lengths": (b"content-length: 5, 6\r\n", b"hello!"),
    "signed length": (b"content-length: +5\r\n", b"hello"),
    "negative length": (b"content-length: -5\r\n", b"hello"),
    "hexadecimal length": (b"content-length: 0x5\r\n", b"hello"),
    "length with a space": (b"content-length: 5 5\r\n", b"hello"),
    "empty length": (b"content-length: \r\n", b""),
    "huge length": (b"content-length: 99999999999999999999999\r\n", b""),
    "identity, chunked": (b"transfer-encoding: identity, chunked\r\n", b"0\r\n\r\n"),
    "identity, chunked with a length": (
        b"transfer-encoding: identity, chunked\r\ncontent-length: 5\r\n",
        b"0\r\n\r\n" + SMUGGLE,
    ),
    "chunked, identity": (b"transfer-encoding: chunked, identity\r\n", b"0\r\n\r\n"),
    "chunked twice": (b"transfer-encoding: chunked, chunked\r\n", b"0\r\n\r\n"),
    "two transfer-encodings": (
        b"transfer-encoding: chunked\r\ntransfer-encoding: x\r\n",
        b"0\r\n\r\n",
    ),
    "unknown coding": (b"transfer-encoding: xchunked\r\n", b"0\r\n\r\n"),
    "quoted coding": (b'transfer-encoding: "chunked"\r\n', b"0\r\n\r\n"),
    "vertical tab before chunked": (b"transfer-encoding: \x0bchunked\r\n", b"0\r\n\r\n"),
    "space before the colon": (b"content-length : 5\r\n", b"hello"),
    "folded line": (b"x-long: one\r\n two\r\n", b""),
    "folded with a tab": (b"transfer-encoding:\r\n\tchunked\r\n", b"0\r\n\r\n"),
    "bare CR in a value": (b"x-a: one\rtransfer-encoding: chunked\r\n", b""),
    "bare LF ends a line": (b"x-a: one\ncontent-length: 5\r\n", b"hello"),
    "NUL in a value": (b"x-a: one\x00two\r\n", b""),
    "NUL in a name": (b"x\x00a: one\r\n", b""),
    "no colon": (b"just words\r\n", b""),
    "empty name": (b": value\r\n", b""),
    "space in a name": (b"x a: value\r\n", b""),
    "two hosts": (b"host: b\r\n", b""),
}


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize(("head", "body"), ATTACKS.values(), ids=ATTACKS.keys())
async def test_an_ambiguous_request_is_400_and_the_connection_closes(
    stage: Stage, head: bytes, body: bytes
) -> None:
    # B011
    actor, origin = await stage.actor(echo)
    connection = await stage.http1()
    await connection.send(raw(actor, head, body))
    answer = await connection.response()
    assert answer.status == 400
    assert await connection.rest() == b""
    assert origin.exchanges == []


START_LINES = {
    "no version": b"GET /\r\n",
    "HTTP/0.9": b"GET / HTTP/0.9\r\n",
    "HTTP/2.0": b"GET / HTTP/2.0\r\n",
    "lower case version": b"GET / http/1.1\r\n",
    "two spaces": b"GET  / HTTP/1.1\r\n",
    "tab for a space": b"GET\t/ HTTP/1.1\r\n",
    "space in the target": b"GET /a b HTTP/1.1\r\n",
    "leading space": b" GET / HTTP/1.1\r\n",
    "no method": b" / HTTP/1.1\r\n",
    "bare LF": b"GET / HTTP/1.1\n",
    "control byte in the target": b"GET /\x01 HTTP/1.1\r\n",
    "method with a colon": b"GE:T / HTTP/1.1\r\n",
}


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize("line", START_LINES.values(), ids=START_LINES.keys())
async def test_a_malformed_start_line_is_refused(stage: Stage, line: bytes) -> None:
    actor, origin = await stage.actor(echo)
    connection = await stage.http1()
    await connection.send(
        line + b"host: a\r\nate-target-actor: " + actor.ref.encode() + b"\r\n\r\n"
    )
    answer = await connection.response()
    assert answer.status in (400, 505)
    assert await connection.rest() == b""
    assert origin.exchanges == []


@pytest.mark.conformance("I-12")
async def test_a_request_without_host_is_refused(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    answer = await stage.ask(
        b"GET / HTTP/1.1\r\nate-target-actor: " + actor.ref.encode() + b"\r\n\r\n"
    )
    assert (answer.status, origin.exchanges) == (400, [])


BROKEN_CHUNKS = {
    "size is no number": b"zz\r\nhello\r\n0\r\n\r\n",
    "size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size overflows": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "data longer than its size": b"3\r\nhello\r\n0\r\n\r\n",
    "bare LF after the size": b"5\nhello\r\n0\r\n\r\n",
    "bare LF after the data": b"5\r\nhello\n0\r\n\r\n",
    "bare CR in an extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "bare LF in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "space before the size": b" 5\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize("body", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS.keys())
async def test_a_broken_chunk_ends_the_connection_and_the_actor_gets_no_whole_body(
    stage: Stage, body: bytes
) -> None:
    actor, origin = await stage.actor(echo)
    connection = await stage.http1()
    await connection.send(raw(actor, b"transfer-encoding: chunked\r\n", body))
    answer = await connection.response()
    assert answer.status == 400
    assert await connection.rest() == b""
    assert [exchange.body for exchange in origin.exchanges if exchange.body is not None] == []


@pytest.mark.conformance("I-12")
async def test_a_chunk_extension_does_not_reach_the_actor(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    answer = await stage.ask(
        raw(actor, b"transfer-encoding: chunked\r\n", b'5;a="b"\r\nhello\r\n0\r\n\r\n')
    )
    assert (answer.status, json.loads(answer.data)["body"]) == (200, "hello")


HTTP2_ATTACKS: dict[str, list[tuple[str, str]]] = {
    "CR LF in a value": [("x-a", "one\r\nx-injected: 1")],
    "LF in a value": [("x-a", "one\nx-injected: 1")],
    "CR in a value": [("x-a", "one\rtwo")],
    "NUL in a value": [("x-a", "one\0two")],
    "CR LF in a name": [("x-a: 1\r\nx-injected", "1")],
    "colon in a name": [("x-a:b", "1")],
    "upper case name": [("X-Upper", "1")],
    "transfer-encoding": [("transfer-encoding", "chunked")],
    "connection": [("connection", "keep-alive")],
    "keep-alive": [("keep-alive", "timeout=5")],
    "proxy-connection": [("proxy-connection", "keep-alive")],
    "upgrade": [("upgrade", "h2c")],
    "te other than trailers": [("te", "gzip")],
    "two lengths": [("content-length", "5"), ("content-length", "6")],
    "length no number": [("content-length", "five")],
    "pseudo field after fields": [("x-a", "1"), (":path", "/other")],
    "unknown pseudo field": [(":unknown", "1")],
    "second path": [(":path", "/other")],
    "two hosts": [("host", "b.example"), ("host", "c.example")],
}


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize("more", HTTP2_ATTACKS.values(), ids=HTTP2_ATTACKS.keys())
async def test_a_malformed_http2_request_reaches_no_actor(
    stage: Stage, more: list[tuple[str, str]]
) -> None:
    # B014
    actor, origin = await stage.actor(echo)
    status = await stage.http2_status(raw_h2.get("/", actor.ref, *more))
    assert (status, origin.exchanges) == (400, [])


@pytest.mark.conformance("I-12", "I-03")
async def test_a_host_beside_authority_never_replaces_it(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    answer = await (await stage.http2()).ask(raw_h2.get("/", actor.ref, ("host", "b.example")))
    seen = [head.all("host") for head in origin.heads]
    assert (answer.status, seen) in ((400, []), (200, [["app.example"]]))


PATHS = {"a space": "/a b", "CR LF": "/a\r\nx: 1", "empty": "", "no slash": "a", "NUL": "/\0"}


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
async def test_a_malformed_http2_path_reaches_no_actor(stage: Stage, path: str) -> None:
    # B014: it would become a second request line.
    actor, origin = await stage.actor(echo)
    status = await stage.http2_status(raw_h2.get(path, actor.ref))
    assert (status, origin.exchanges) == (400, [])


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize(
    "method", ["GET /x HTTP/1.1\r\nx: 1", "GE T", ""], ids=["request line", "space", "empty"]
)
async def test_a_malformed_http2_method_reaches_no_actor(stage: Stage, method: str) -> None:
    actor, origin = await stage.actor(echo)
    status = await stage.http2_status(raw_h2.fields(method, "/", actor.ref))
    assert (status, origin.exchanges) == (400, [])


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize(
    ("promised", "sent"), [(5, 10), (10, 5)], ids=["more than promised", "less than promised"]
)
async def test_an_http2_length_that_lies_gives_the_actor_no_whole_request(
    stage: Stage, promised: int, sent: int
) -> None:
    # B014
    actor, origin = await stage.actor(echo)
    fields = raw_h2.fields("POST", "/", actor.ref, ("content-length", str(promised)))
    status = await stage.http2_status(fields, b"x" * sent)
    assert status in (400, 502)
    assert [exchange.body for exchange in origin.exchanges if exchange.body is not None] == []


@pytest.mark.conformance("I-12")
async def test_hop_by_hop_fields_do_not_reach_the_actor(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    hop = [
        ("keep-alive", "timeout=9"),
        ("proxy-connection", "close"),
        ("te", "gzip"),
        ("proxy-authorization", "Basic x"),
    ]
    named = [("connection", "keep-alive, x-hop"), ("x-hop", "1"), ("x-end", "1")]
    assert (await stage.request(actor, "GET", "/", *hop, *named)).status == 200
    seen = origin.heads[0].names
    assert not {"keep-alive", "proxy-connection", "x-hop"} & seen
    assert origin.heads[0].get("te") in (None, "trailers")
    assert "x-end" in seen


@pytest.mark.conformance("I-12")
async def test_all_connection_lines_are_one_list(stage: Stage) -> None:
    # B009
    actor, origin = await stage.actor(echo)
    lines = [("connection", ""), ("connection", "x-one"), ("Connection", "X-Two, x-three")]
    fields = [("x-one", "1"), ("x-two", "2"), ("x-three", "3"), ("x-four", "4")]
    assert (await stage.request(actor, "GET", "/", *lines, *fields)).status == 200
    assert not {"x-one", "x-two", "x-three"} & origin.heads[0].names
    assert "x-four" in origin.heads[0].names


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize(
    "named", ["ate-target-actor", "host", "content-length", "transfer-encoding"]
)
async def test_naming_a_field_in_connection_does_not_steer_routing_or_framing(
    stage: Stage, named: str
) -> None:
    # B009
    actor, origin = await stage.actor(echo)
    answer = await stage.request(
        actor, "POST", "/", ("connection", ""), ("connection", named), body=b"whole"
    )
    # Whole to that actor, or refused: 404 where the field that names it was taken away.
    assert answer.status in (200, 400, 404)
    bodies = [(exchange.body, exchange.head.all("host")) for exchange in origin.exchanges]
    assert bodies == ([(b"whole", ["app.example"])] if answer.status == 200 else [])


@pytest.mark.conformance("I-12")
async def test_the_actors_hop_by_hop_fields_do_not_reach_the_client(stage: Stage) -> None:
    fields = [
        ("connection", "x-hop"),
        ("connection", "keep-alive"),
        ("keep-alive", "timeout=9"),
        ("x-hop", "1"),
        ("x-end", "1"),
    ]

    async def handler(exchange: Exchange) -> None:
        await exchange.answer(200, b"ok", *fields)

    actor, _ = await stage.actor(handler)
    for answer_names in (
        (await stage.get(actor)).head.names,
        {
            name
            for name, _ in (await (await stage.http2()).ask(raw_h2.get("/", actor.ref))).headers
            or []
        },
    ):
        assert not {"keep-alive", "x-hop"} & answer_names
        assert "x-end" in answer_names


BROKEN_ANSWERS = {
    "length and chunked": (
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    ),
    "two lengths that differ": b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "unknown coding": b"transfer-encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "bare CR in a value": b"x-a: 1\rx: 2\r\ncontent-length: 0\r\n\r\n",
    "NUL in a value": b"x-a: 1\x00\r\ncontent-length: 0\r\n\r\n",
    "space before the colon": b"content-length : 5\r\n\r\nhello",
}


@pytest.mark.conformance("I-12")
@pytest.mark.parametrize("rest", BROKEN_ANSWERS.values(), ids=BROKEN_ANSWERS.keys())
async def test_an_ambiguous_answer_of_an_actor_is_a_502(stage: Stage, rest: bytes) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\n" + rest)

    actor, _ = await stage.actor(handler)
    assert (await stage.get(actor)).status == 502


@pytest.mark.conformance("I-12")
async def test_bytes_behind_an_answer_are_not_the_next_answer(stage: Stage) -> None:
    async def chatty(exchange: Exchange) -> None:
        await exchange.send(
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nmine"
            b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"
        )

    actor, _ = await stage.actor(chatty)
    connection = await stage.http1()
    for _ in range(3):
        answer = await connection.ask(request("GET", "/", ("host", "a"), actor.header))
        assert answer.data == b"mine"
