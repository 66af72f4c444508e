"""Requests that wait: which, how long, how many."""

import asyncio
import itertools

import grpc
import pytest

from tests.support import raw_h2
from tests.support.eventually import eventually
from tests.support.origins import echo
from tests.support.raw_http1 import RawHttp1, Response, request
from tests.support.resume_steps import failure, no_room, resumed, running
from tests.support.stage import Actor, Stage, new_ref

LIMIT = 20.0
RETRYABLE = [
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.UNAVAILABLE,
]
FINAL = [code for code in grpc.StatusCode if code not in [*RETRYABLE, grpc.StatusCode.OK]]


def names(codes: list[grpc.StatusCode]) -> list[str]:
    return [code.name for code in codes]


async def parked(stage: Stage, ref: str) -> asyncio.Task[Response]:
    """A request that waits: its actor was asked for a second time."""
    waiting = asyncio.create_task(stage.get(ref))
    await stage.api.wait_for_calls(ref, 2)
    return waiting


async def parking(stage: Stage, count: int) -> None:
    """Until so many requests are parked."""

    async def reached() -> bool:
        return (await stage.router.metrics()).sum("atenet_router_parking_active") == count

    await eventually(reached)


def full(stage: Stage) -> str:
    """An actor for which there is no room."""
    ref = new_ref()
    stage.api.script(ref, no_room())
    return ref


@pytest.mark.conformance("I-19")
@pytest.mark.parametrize("code", RETRYABLE, ids=names(RETRYABLE))
async def test_what_can_clear_by_waiting_is_waited_for(stage: Stage, code: grpc.StatusCode) -> None:
    # B020, B025
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, failure(code), failure(code), resumed(actor.place))
    assert (await stage.get(actor)).status == 200
    assert stage.api.calls[actor.ref] == 3


@pytest.mark.conformance("I-19", "I-23")
@pytest.mark.parametrize("code", FINAL, ids=names(FINAL))
async def test_anything_else_fails_at_once(stage: Stage, code: grpc.StatusCode) -> None:
    # B025
    ref = new_ref()
    stage.api.script(ref, failure(code), no_room())
    assert (await stage.get(ref)).status >= 400
    assert stage.api.calls[ref] == 1


@pytest.mark.conformance("I-19")
@pytest.mark.router(park_budget=1.5)
async def test_attempts_back_off(stage: Stage) -> None:
    ref = full(stage)
    await stage.get(ref)
    times = [call.at for call in stage.api.seen if call.actor == ref]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    # 100 ms and growing by a tenth, up to a tenth of jitter: about ten in 1.5 s.
    assert 4 <= len(times) <= 16
    assert min(gaps) > 0.08


@pytest.mark.conformance("I-19")
@pytest.mark.router(park_budget=1.0)
async def test_joiners_share_the_flights_remaining_budget(stage: Stage) -> None:
    ref = full(stage)
    first = await parked(stage, ref)
    await asyncio.sleep(0.5)
    joiner = asyncio.create_task(stage.get(ref))
    assert (await first).status == stage.dataplane.no_capacity_status
    calls = stage.api.calls[ref]
    assert (await joiner).status == stage.dataplane.no_capacity_status
    # A budget of the joiner's own would have asked on.
    assert stage.api.calls[ref] == calls


@pytest.mark.conformance("I-19")
async def test_an_actor_that_frees_up_late_is_served(stage: Stage) -> None:
    # B020: two seconds without room, inside the default budget of five.
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, no_room())
    waiting = await parked(stage, actor.ref)
    await asyncio.sleep(2)
    stage.api.script(actor.ref, resumed(actor.place))
    assert (await waiting).status == 200


@pytest.mark.conformance("I-19", "I-23")
@pytest.mark.router(park_budget=0.6)
async def test_a_crashed_actor_fails_without_using_the_budget(stage: Stage) -> None:
    # B026
    ref = new_ref()
    stage.api.script(
        ref, failure(grpc.StatusCode.FAILED_PRECONDITION, f"actor {ref} is CRASHED: exit 137")
    )
    answer = await stage.get(ref)
    assert (answer.status, answer.head.get("ate-reason")) == (503, "actor-crashed")
    assert b"crashed" in answer.data
    assert stage.api.calls[ref] == 1


@pytest.mark.conformance("I-19")
async def test_an_actor_being_suspended_is_waited_for(stage: Stage) -> None:
    # B046
    actor, _ = await stage.actor(echo)
    suspending = failure(grpc.StatusCode.FAILED_PRECONDITION, f"actor {actor.ref} is SUSPENDING")
    stage.api.script(actor.ref, suspending, suspending, resumed(actor.place))
    assert (await stage.get(actor)).status == 200


@pytest.mark.conformance("I-23")
async def test_an_actor_being_deleted_is_gone(stage: Stage) -> None:
    # B046
    ref = new_ref()
    stage.api.script(ref, failure(grpc.StatusCode.FAILED_PRECONDITION, f"actor {ref} is DELETING"))
    assert (await stage.get(ref)).status == 404


@pytest.mark.conformance("I-21")
async def test_the_request_beyond_the_limit_is_shed_at_once(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B020: a full lot sheds at once.
    stage: Stage = await own_stage(park_max=3, park_budget=5.0)
    waiting = [await parked(stage, full(stage)) for _ in range(3)]
    ref = full(stage)
    answer = await stage.get(ref)
    assert (answer.status, answer.head.get("ate-reason")) == (503, "parking-full")
    assert not any(task.done() for task in waiting)
    for task in waiting:
        assert (await task).status == stage.dataplane.no_capacity_status


@pytest.mark.conformance("I-21")
async def test_each_waiting_request_counts_also_at_one_actor(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(park_max=4, park_budget=2.0)
    ref = full(stage)
    answers = await stage.many(7, ref)
    reasons = sorted(str(answer.head.get("ate-reason")) for answer in answers)
    assert reasons == ["no-capacity"] * 4 + ["parking-full"] * 3


@pytest.mark.conformance("I-21", "I-06")
async def test_direct_and_tunnelled_requests_share_one_lot(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(park_max=1, park_budget=5.0)
    holder = await parked(stage, full(stage))
    ref = full(stage)
    inside = await RawHttp1.open(stage.router.connect)
    stage.closing(inside.close)
    await inside.send(request("CONNECT", "x:80", ("host", "x:80"), ("ate-target-actor", ref)))
    assert (await inside.head()).status == 200
    answer = await inside.ask(request("GET", "/", ("host", "a")))
    assert (answer.status, answer.head.get("ate-reason")) == (503, "parking-full")
    await holder


@pytest.mark.conformance("I-21")
@pytest.mark.router(park_max=0)
@pytest.mark.parametrize("code", RETRYABLE, ids=names(RETRYABLE))
async def test_with_parking_off_only_aborted_is_retried(
    stage: Stage, code: grpc.StatusCode
) -> None:
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, failure(code), running(actor.place))
    answer = await stage.get(actor)
    if code is grpc.StatusCode.ABORTED:
        assert (answer.status, stage.api.calls[actor.ref]) == (200, 2)
    else:
        assert answer.status in (503, stage.dataplane.no_capacity_status)
        assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-22")
async def test_a_full_lot_serves_every_request_to_running_actors(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B023
    stage: Stage = await own_stage(park_max=1, park_budget=5.0)
    holder = await parked(stage, full(stage))
    origin = await stage.origin(echo)
    running_actors = [stage.actor_at(origin.address) for _ in range(10)]
    answers = await asyncio.gather(*(stage.get(actor) for actor in running_actors))
    assert [answer.status for answer in answers] == [200] * 10
    assert not holder.done()
    await holder


@pytest.mark.conformance("I-22")
async def test_a_cold_resume_that_finds_room_needs_no_slot(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B023: waiting for a restore is not parking.
    stage: Stage = await own_stage(park_max=1, park_budget=5.0)
    holder = await parked(stage, full(stage))
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, resumed(actor.place, after=0.3))
    assert (await stage.get(actor)).status == 200
    await holder


@pytest.mark.conformance("I-22")
async def test_a_slot_is_free_the_moment_its_client_leaves(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B035
    stage: Stage = await own_stage(park_max=1, park_budget=5.0)
    ref = full(stage)
    leaver = await stage.http1()
    await leaver.send(request("GET", "/", ("host", "a"), ("ate-target-actor", ref)))
    await stage.api.wait_for_calls(ref, 2)
    leaver.abort()
    actor, _ = await stage.actor(echo)
    await _served_soon(stage, actor)


async def _served_soon(stage: Stage, actor: Actor) -> None:
    """Parks as soon as a slot is free, far within the leaver's budget."""
    async with asyncio.timeout(3):
        while True:
            stage.api.script(actor.ref, no_room(), resumed(actor.place))
            answer = await stage.get(actor)
            if answer.status == 200:
                return
            assert answer.head.get("ate-reason") == "parking-full"


@pytest.mark.conformance("I-22")
async def test_an_http2_stream_that_is_reset_frees_its_slot(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B035
    stage: Stage = await own_stage(park_max=1, park_budget=5.0)
    ref = full(stage)
    connection = await stage.http2()
    stream = await connection.start(raw_h2.get("/", ref))
    await stage.api.wait_for_calls(ref, 2)
    await connection.reset(stream)
    actor, _ = await stage.actor(echo)
    await _served_soon(stage, actor)


@pytest.mark.conformance("I-21", "I-22")
async def test_impatient_clients_leave_nothing_behind(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B035: far more clients than slots, none of which stays.
    stage: Stage = await own_stage(park_max=64, park_budget=5.0)
    ref = full(stage)
    for _ in range(10):
        leavers = [await RawHttp1.open(stage.router.web) for _ in range(40)]
        for leaver in leavers:
            await leaver.send(
                request("POST", "/", ("host", "a"), ("ate-target-actor", ref), body=b"x" * 4096)
            )
        for leaver in leavers:
            leaver.abort()
    await parking(stage, 0)


@pytest.mark.conformance("I-21", "I-17")
async def test_a_thousand_parked_requests_are_all_served_when_room_appears(own_stage) -> None:  # type: ignore[no-untyped-def]
    # A thousand tunnels are opened at once: two cores may take more than a second for the last.
    stage: Stage = await own_stage(
        park_budget=30.0, drain_timeout=40.0, connect_timeout=15.0, handshake_timeout=15.0
    )
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, no_room())
    connections = [await stage.http2() for _ in range(8)]
    streams = [
        [await one.start(raw_h2.get("/", actor.ref)) for _ in range(128)] for one in connections
    ]
    await parking(stage, 1024)
    shed = await stage.get(actor)
    assert (shed.status, shed.head.get("ate-reason")) == (503, "parking-full")
    stage.api.script(actor.ref, resumed(actor.place))
    for connection, waiting in zip(connections, streams, strict=True):
        for stream in waiting:
            assert (await connection.response(stream)).status == 200
