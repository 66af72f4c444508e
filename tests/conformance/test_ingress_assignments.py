"""Assignments on the Envoy dataplane: asked for each time, and a stale one ends the request."""

import asyncio

import pytest

from tests.support.origins import answering, echo
from tests.support.raw_http1 import RawHttp1, request
from tests.support.resume_steps import gated, running
from tests.support.scripted_worker import relaying, stale
from tests.support.stage import Stage

pytestmark = pytest.mark.only("envoy")


@pytest.mark.conformance("I-16")
async def test_each_request_asks_also_on_one_connection(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    connection = await stage.http1()
    for _ in range(5):
        answer = await connection.ask(request("GET", "/", ("host", "a"), actor.header))
        assert answer.status == 200
    assert (stage.api.calls[actor.ref], len(origin.exchanges)) == (5, 5)


@pytest.mark.conformance("I-16")
async def test_each_request_inside_a_connect_asks(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    outer = await RawHttp1.open(stage.router.connect)
    stage.closing(outer.close)
    await outer.send(request("CONNECT", "x:80", ("host", "x:80"), actor.header))
    assert (await outer.head()).status == 200
    before = stage.api.calls[actor.ref]
    for _ in range(3):
        assert (await outer.ask(request("GET", "/", ("host", "a")))).status == 200
    assert (stage.api.calls[actor.ref] - before, len(origin.exchanges)) == (3, 3)


@pytest.mark.conformance("I-16", "I-18")
async def test_only_requests_in_flight_together_share_an_answer(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, running(actor.place)))
    together = asyncio.create_task(stage.many(10, actor))
    await stage.api.wait_for_calls(actor.ref, 1)

    await asyncio.sleep(0.3)
    gate.set()
    assert {answer.status for answer in await together} == {200}
    assert stage.api.calls[actor.ref] == 1
    assert (await stage.get(actor)).status == 200
    assert stage.api.calls[actor.ref] == 2


@pytest.mark.conformance("I-16", "I-13")
async def test_a_move_is_followed_by_the_very_next_request(stage: Stage) -> None:
    # B132: no answer of a moment ago is used.
    origins = [await stage.origin(answering(200, name)) for name in (b"first", b"second")]
    workers = [await stage.scripted_worker(relaying(origin.address)) for origin in origins]
    actor = stage.actor_on(workers[0].ip)
    assert (await stage.get(actor)).data == b"first"
    stage.api.place(actor.place.moved(workers[1].ip))
    assert (await stage.get(actor)).data == b"second"


@pytest.mark.conformance("I-30")
async def test_a_stale_assignment_fails_the_request_and_is_not_asked_for_again(
    stage: Stage,
) -> None:
    # B018: the internal 421 never leaves the router.
    origin = await stage.origin(echo)
    old = await stage.scripted_worker(stale)
    new = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(old.ip)
    stage.api.script(actor.ref, running(actor.place), running(actor.place.moved(new.ip)))
    answer = await stage.request(actor, "POST", "/", body=b"once")
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    assert answer.head.get("retry-after") is not None
    assert not [name for name in answer.head.names if name.startswith("x-ate-")]
    assert (stage.api.calls[actor.ref], new.tunnels, origin.exchanges) == (1, [], [])
    # A tunnel may be opened once more at the same worker; nothing of the request was sent into it.
    assert {tunnel.received for tunnel in old.tunnels} == {0}
    assert len(old.tunnels) <= 2
    # The next request asks anew.
    assert (await stage.request(actor, "POST", "/", body=b"again")).status == 200
    assert [exchange.body for exchange in origin.exchanges] == [b"again"]
