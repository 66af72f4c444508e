"""Workers that are slow, late, crowded or in the middle of a suspend."""

import asyncio

import pytest

from tests.support import raw_h2
from tests.support.bulk_origins import download
from tests.support.dead_worker import BlackHole, refusing_address
from tests.support.origins import Exchange, answering, echo
from tests.support.raw_http1 import RawHttp1, request
from tests.support.resume_steps import no_room, resumed
from tests.support.scripted_worker import relaying
from tests.support.slow_link import SlowLink
from tests.support.stage import Stage

MIB = 1 << 20
LIMIT = 30.0


@pytest.mark.conformance("I-31")
@pytest.mark.only("agentgateway")
async def test_a_first_dial_that_is_swallowed_is_made_again_soon(stage: Stage) -> None:
    # B037: the first SYN is dropped, a later one is not; each dial has a second.
    origin = await stage.origin(echo)
    hole = BlackHole()
    actor = stage.actor_on(hole.ip)
    asked = asyncio.create_task(stage.get(actor))
    await stage.api.wait_for_calls(actor.ref, 1)
    await asyncio.sleep(0.2)
    hole.close()
    worker = await stage.scripted_worker(relaying(origin.address), ip=hole.ip)
    assert (await asked).status == 200
    assert len(worker.tunnels) == 1


@pytest.mark.conformance("I-31", "I-14")
async def test_a_slow_link_costs_round_trips_and_fails_nothing(stage: Stage) -> None:
    # B038: 80 ms each way between router and worker, cold and warm.
    link = await SlowLink.start(stage.worker.ip, 0.08)
    stage.closing(link.close)
    actor, _ = await stage.actor(echo)
    place = actor.place.moved(link.ip)
    stage.api.script(actor.ref, no_room(), resumed(place))
    assert [(await stage.get(actor)).status for _ in range(3)] == [200] * 3


@pytest.mark.conformance("I-31", "I-14")
async def test_a_failed_dial_changes_nothing_for_later_starts(stage: Stage) -> None:
    # B040
    assert (await stage.get(stage.actor_on(refusing_address()))).status == 503
    for _ in range(10):
        actor, _ = await stage.actor(echo)
        stage.api.script(actor.ref, resumed(actor.place))
        assert (await stage.get(actor)).status == 200
        assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-11", "I-26")
async def test_many_stalled_uploads_do_not_stall_others_on_the_same_worker(stage: Stage) -> None:
    # B051: each fills its own window; together they may not fill the connection's.
    done = asyncio.Event()

    async def deaf(exchange: Exchange) -> None:
        await done.wait()
        exchange.keep_alive = False

    stalled, _ = await stage.actor(deaf)
    small, _ = await stage.actor(echo)
    uploads: list[asyncio.Task[None]] = []
    try:
        for _ in range(40):
            wire = await stage.http1()
            head = request(
                "POST", "/", ("host", "a"), stalled.header, ("content-length", str(64 * MIB))
            )
            uploads.append(asyncio.create_task(_push(wire, head, 8 * MIB)))
        # Stalled: nothing moved for a while.
        await _until_still(stage, stalled.ref)
        async with asyncio.timeout(LIMIT):
            assert [a.status for a in await stage.many(50, small)] == [200] * 50
            large = await stage.request(small, "POST", "/", body=b"b" * MIB)
            assert large.status == 200
    finally:
        done.set()
        for upload in uploads:
            upload.cancel()
        await asyncio.gather(*uploads, return_exceptions=True)


async def _push(wire: RawHttp1, head: bytes, size: int) -> None:
    await wire.send(head)
    for _ in range(size // 65536):
        await wire.send(b"u" * 65536)


async def _until_still(stage: Stage, ref: str) -> None:
    """Until the worker has carried nothing for the actor for a while."""
    name = ref.split("/")[1]

    def carried() -> int:
        return sum(
            actor["bytes_to_actor"]
            for actor in stage.worker.stats()["actors"]
            if actor["name"] == name
        )

    before = -1
    while (now := carried()) != before or now == 0:
        before = now
        await asyncio.sleep(0.3)


@pytest.mark.conformance("I-11", "I-26")
async def test_many_stopped_readers_do_not_stall_others_on_the_same_worker(stage: Stage) -> None:
    # B051, the other way.
    bulk, _ = await stage.actor(download(64 * MIB))
    small, _ = await stage.actor(echo)
    for _ in range(40):
        stopped = await stage.http2(read_all=False)
        await stopped.head(await stopped.start(raw_h2.get("/", bulk.ref)))
    async with asyncio.timeout(LIMIT):
        assert [answer.status for answer in await stage.many(50, small)] == [200] * 50


TURN = 0.6


@pytest.mark.conformance("T-05", "I-33")
@pytest.mark.parametrize("after", [0.0, 0.1, 0.3])
async def test_a_turn_that_runs_when_its_actor_is_suspended_is_finished(
    stage: Stage, after: float
) -> None:
    # B069: within the grace.
    async def turn(exchange: Exchange) -> None:
        await exchange.read_body()
        await asyncio.sleep(TURN)
        await exchange.answer(200, b"whole turn")

    actor, origin = await stage.actor(turn)
    assert actor.activation is not None
    asked = asyncio.create_task(stage.request(actor, "POST", "/", body=b"x"))
    await origin.wait_for_requests(1)
    await asyncio.sleep(after)
    assert await stage.worker.deactivate(actor.activation, grace=30.0)
    assert (await asked).data == b"whole turn"


@pytest.mark.conformance("T-05", "I-29", "I-32")
@pytest.mark.only("agentgateway")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_turn_that_outlasts_the_grace_is_asked_again_or_told_so(
    stage: Stage, method: str
) -> None:
    # B069: never a bare 502 that reads like a broken actor.
    async def endless(exchange: Exchange) -> None:
        await exchange.read_body()
        await asyncio.sleep(LIMIT)

    actor, origin = await stage.actor(endless)
    assert actor.activation is not None
    again = await stage.origin(answering(200, b"after the resume"))
    asked = asyncio.create_task(
        stage.request(actor, method, "/", body=b"x" if method == "POST" else None)
    )
    await origin.wait_for_requests(1)
    await stage.worker.deactivate(actor.activation, grace=0.1)
    stage.actor_at(again.address, ref=actor.ref)
    answer = await asked
    if method == "GET":
        assert (answer.status, answer.data) == (200, b"after the resume")
    else:
        # The actor had it: nobody but the caller may ask again.
        assert (answer.status, answer.head.get("ate-reason")) == (503, "actor-unavailable")
        assert answer.head.get("retry-after") is not None
        assert again.exchanges == []


@pytest.mark.conformance("T-05", "I-29")
@pytest.mark.only("agentgateway")
async def test_a_request_that_comes_during_a_suspend_is_sent_where_the_actor_is_next(
    stage: Stage,
) -> None:
    # B069: not yet given to the actor, so it is carried elsewhere.
    gate = asyncio.Event()

    async def held(exchange: Exchange) -> None:
        await exchange.read_body()
        await gate.wait()
        await exchange.answer(200, b"the old one")

    actor, origin = await stage.actor(held)
    assert actor.activation is not None
    running = asyncio.create_task(stage.get(actor))
    await origin.wait_for_requests(1)
    suspending = asyncio.create_task(stage.worker.deactivate(actor.activation, grace=LIMIT))
    other = await stage.other_worker()
    again = await stage.origin(answering(200, b"the new one"))

    async def resume():  # type: ignore[no-untyped-def]
        return await resumed(stage.actor_at(again.address, worker=other, ref=actor.ref).place)()

    stage.api.script(actor.ref, resume)
    assert (await stage.request(actor, "POST", "/", body=b"x")).data == b"the new one"
    gate.set()
    assert (await running).data == b"the old one"
    assert await suspending
