"""Workers that say goodbye, and requests that were already sent when something broke."""

import asyncio

import h2.errors
import pytest

from tests.support.origins import Exchange, answering, echo, held
from tests.support.raw_http1 import RawHttp1, request
from tests.support.scripted_worker import relaying
from tests.support.stage import Stage
from tests.support.tunnel_stream import TunnelStream, relay


@pytest.mark.conformance("I-32")
async def test_running_streams_finish_and_new_ones_go_to_a_new_connection(stage: Stage) -> None:
    # B055, B142
    gate = asyncio.Event()
    slow, quick = await stage.origin(held(gate, answering(200, b"slow"))), await stage.origin(echo)
    addresses: dict[str, str] = {}

    async def answer(stream: TunnelStream) -> None:
        await relay(stream, addresses[stream.headers["ate-target-actor"]])

    worker = await stage.scripted_worker(answer)
    running, fresh = stage.actor_on(worker.ip), stage.actor_on(worker.ip)
    addresses |= {running.ref: slow.address, fresh.ref: quick.address}
    in_flight = asyncio.create_task(stage.get(running))
    await slow.wait_for_requests(1)
    await worker.connections[0].goaway()
    assert [answer.status for answer in await stage.many(20, fresh)] == [200] * 20
    assert worker.connections[0].streams_after_goaway == 0
    assert len(worker.connections) <= 1 + stage.dataplane.worker_connections
    gate.set()
    assert (await in_flight).data == b"slow"


@pytest.mark.conformance("I-32")
async def test_a_stream_beyond_the_last_one_is_moved_unseen(stage: Stage) -> None:
    # B055: GOAWAY(last) as the next stream is being opened.
    origin = await stage.origin(echo)

    async def answer(stream: TunnelStream) -> None:
        if stream.connection is worker.connections[0] and stream.id > 1:
            await stream.connection.goaway(last_stream=1)
            return
        await relay(stream, origin.address)

    worker = await stage.scripted_worker(answer)
    first, second = stage.actor_on(worker.ip), stage.actor_on(worker.ip)
    assert (await stage.get(first)).status == 200
    answer_of_second = await stage.request(second, "POST", "/", body=b"once")
    assert answer_of_second.status == 200
    assert len([head for head in origin.heads if head.method == "POST"]) == 1


@pytest.mark.conformance("I-32")
async def test_a_refused_stream_is_tried_again(stage: Stage) -> None:
    origin = await stage.origin(echo)
    refusals = 1

    async def answer(stream: TunnelStream) -> None:
        nonlocal refusals
        if refusals:
            refusals -= 1
            await stream.reset(h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        await relay(stream, origin.address)

    worker = await stage.scripted_worker(answer)
    assert (await stage.request(stage.actor_on(worker.ip), "POST", "/", body=b"once")).status == 200
    assert len(origin.exchanges) == 1


@pytest.mark.conformance("I-32")
async def test_an_idle_inner_connection_on_a_leaving_worker_connection_is_not_used(
    stage: Stage,
) -> None:
    # B056
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(worker.ip)
    # One client connection, so that one thread of the router carries both requests.
    client, ask = await stage.http1(), request("GET", "/", ("host", "a"), actor.header)
    assert (await client.ask(ask)).status == 200
    await worker.connections[0].goaway()
    await asyncio.sleep(0.1)
    assert (await client.ask(ask)).status == 200
    assert [tunnel.connection for tunnel in worker.tunnels] == worker.connections
    assert len(worker.connections) == 2


@pytest.mark.conformance("I-32")
async def test_a_post_that_was_sent_is_never_sent_again(stage: Stage) -> None:
    # B043: the worker counts the whole POST, then sends an invalid frame.
    bodies: list[bytes] = []

    async def break_off(exchange: Exchange) -> None:
        bodies.append((await exchange.read_body()).data)
        # DATA on stream 0: a connection error.
        worker.connections[-1].send_raw(b"\0\0\x01\0\0\0\0\0\0x")
        await exchange.reader.read(1)
        exchange.keep_alive = False

    origin = await stage.origin(break_off)
    worker = await stage.scripted_worker(relaying(origin.address))
    answer = await stage.request(stage.actor_on(worker.ip), "POST", "/", body=b"once")
    assert answer.status in (502, 503)
    assert bodies == [b"once"]


@pytest.mark.conformance("I-32")
async def test_a_get_is_sent_twice_at_most(stage: Stage) -> None:
    # B043: and is answered if the second one is.
    attempts = 0

    async def first_breaks(exchange: Exchange) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            exchange.reset()
            return
        await exchange.answer(200, b"second")

    actor, _ = await stage.actor(first_breaks)
    answer = await stage.get(actor)
    assert (answer.status, attempts) in ((200, 2), (502, 1))


@pytest.mark.conformance("I-32")
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_request_that_broke_before_any_answer_is_not_repeated(
    stage: Stage, method: str
) -> None:
    # B043
    async def reset(exchange: Exchange) -> None:
        await exchange.read_body()
        exchange.reset()

    actor, origin = await stage.actor(reset)
    answer = await stage.request(actor, method, "/", body=b"once")
    assert (answer.status, len(origin.exchanges)) == (502, 1)


@pytest.mark.conformance("I-32")
async def test_a_kept_connection_that_the_actor_closed_fails_no_post(stage: Stage) -> None:
    # B044: closed as the next POST is on its way: a fresh connection or a clear error, never twice.
    async def one_each(exchange: Exchange) -> None:
        await echo(exchange)
        exchange.keep_alive = False

    actor, origin = await stage.actor(one_each)
    connection = await RawHttp1.open(stage.router.web)
    stage.closing(connection.close)
    statuses = []
    for number in range(20):
        data = request("POST", f"/{number}", ("host", "a"), actor.header, body=b"body")
        statuses.append((await connection.ask(data)).status)
    assert set(statuses) <= {200, 502, 503}
    targets = [head.target for head in origin.heads]
    assert len(targets) == len(set(targets))
    assert statuses.count(200) >= 10
