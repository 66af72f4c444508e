"""From a name to a worker: warm and cold, one flight an actor, the cache."""

import asyncio

import grpc
import pytest

from tests.support.eventually import eventually
from tests.support.origins import answering, echo
from tests.support.raw_http1 import RawHttp1, request
from tests.support.resume_steps import ResumeFailedError, gated, no_room, resumed, running
from tests.support.stage import Actor, Stage, new_ref

LIMIT = 20.0


@pytest.mark.conformance("I-13")
async def test_an_actor_keeps_its_address_across_suspend_resume_and_move(stage: Stage) -> None:
    actor, origin = await stage.actor(answering(200, b"here"))
    assert actor.activation is not None
    workers = [stage.worker, await stage.other_worker()]
    place = actor.place
    assert (await stage.get(actor)).data == b"here"
    for worker in (workers[0], workers[1], workers[0]):
        for other in workers:
            await other.deactivate(actor.activation)
        place = place.moved(worker.ip)
        stage.api.script(actor.ref, resumed(place, after=0.1), running(place))
        worker.activate(actor.ref, origin.address, uid=actor.activation.uid)
        assert (await stage.get(actor)).data == b"here"


@pytest.mark.conformance("I-14")
async def test_a_warm_request_is_one_read(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    assert (await stage.get(actor)).status == 200
    assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-14")
async def test_a_cold_request_waits_until_the_actor_runs(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    waiting = asyncio.create_task(stage.get(actor))
    await stage.api.wait_for_calls(actor.ref, 1)
    assert not waiting.done()
    assert origin.exchanges == []
    gate.set()
    assert (await waiting).status == 200
    assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-17")
async def test_fifty_requests_at_a_cold_actor_make_one_call(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    burst = asyncio.create_task(stage.many(50, actor))
    await stage.api.wait_for_calls(actor.ref, 1)
    # All fifty are sent before the resume ends; the call's length is the test's to say.
    await asyncio.sleep(0.5)
    gate.set()
    assert [answer.status for answer in await burst] == [200] * 50
    assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-17")
async def test_a_burst_shares_one_failure_too(stage: Stage) -> None:
    ref = new_ref()
    gate = asyncio.Event()

    async def vanish():  # type: ignore[no-untyped-def]
        raise ResumeFailedError(grpc.StatusCode.NOT_FOUND, "gone")

    stage.api.script(ref, gated(gate, vanish))
    burst = asyncio.create_task(stage.many(10, ref))
    await stage.api.wait_for_calls(ref, 1)
    await asyncio.sleep(0.2)
    gate.set()
    assert {answer.status for answer in await burst} == {404}
    assert stage.api.calls[ref] == 1


async def _leaver(stage: Stage, actor: Actor) -> RawHttp1:
    """A client whose request is in the air, about to go away."""
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    return connection


@pytest.mark.conformance("I-18")
async def test_the_first_caller_leaving_harms_no_joiner(stage: Stage) -> None:
    # B033
    actor, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    first = await _leaver(stage, actor)
    await stage.api.wait_for_calls(actor.ref, 1)
    joiner = asyncio.create_task(stage.get(actor))
    await asyncio.sleep(0.2)
    first.abort()
    await asyncio.sleep(0.2)
    gate.set()
    assert (await joiner).status == 200
    assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-18")
async def test_a_joiner_leaves_on_its_own(stage: Stage) -> None:
    # B033: a joiner's short patience ends nobody else's wait.
    actor, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    first = asyncio.create_task(stage.get(actor))
    await stage.api.wait_for_calls(actor.ref, 1)
    joiner = await _leaver(stage, actor)
    joiner.abort()
    gate.set()
    assert (await first).status == 200


@pytest.mark.conformance("I-18")
async def test_a_lone_caller_that_leaves_and_a_new_one_never_make_two_calls_at_once(
    stage: Stage,
) -> None:
    # B034
    actor, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    alone = await _leaver(stage, actor)
    await stage.api.wait_for_calls(actor.ref, 1)
    alone.abort()
    await asyncio.sleep(0.2)
    newcomer = asyncio.create_task(stage.get(actor))
    await asyncio.sleep(0.2)
    gate.set()
    assert (await newcomer).status == 200
    assert stage.api.most_in_air[actor.ref] == 1


@pytest.mark.conformance("I-18")
async def test_a_call_that_nobody_waits_for_ends(stage: Stage) -> None:
    # B034: and its answer is no poison for the next caller.
    actor, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)), running(actor.place))
    alone = await _leaver(stage, actor)
    await stage.api.wait_for_calls(actor.ref, 1)
    alone.abort()
    gate.set()
    await stage.api.wait_idle(actor.ref)
    assert (await stage.get(actor)).status == 200


@pytest.mark.conformance("I-18", "I-15")
@pytest.mark.only("agentgateway")
@pytest.mark.router(cache_ttl=0.0)
async def test_a_finished_flight_is_not_joined_and_without_a_cache_nothing_is_reused(
    stage: Stage,
) -> None:
    actor, _ = await stage.actor(echo)
    for count in range(1, 6):
        assert (await stage.get(actor)).status == 200
        assert stage.api.calls[actor.ref] == count


@pytest.mark.conformance("I-15")
@pytest.mark.only("agentgateway")
async def test_requests_within_the_ttl_make_one_call(stage: Stage) -> None:
    # B028
    actor, _ = await stage.actor(echo)
    connection = await stage.http1()
    for _ in range(200):
        assert (
            await connection.ask(request("GET", "/", ("host", "a"), actor.header))
        ).status == 200
    assert stage.api.calls[actor.ref] <= 2


@pytest.mark.conformance("I-15")
@pytest.mark.only("agentgateway")
@pytest.mark.router(cache_ttl=0.5)
async def test_use_does_not_keep_an_entry_alive(stage: Stage) -> None:
    # B028: an entry's life does not slide.
    actor, _ = await stage.actor(echo)
    connection = await stage.http1()
    sent = 0

    async def asked_again() -> bool:
        nonlocal sent
        sent += 1
        answer = await connection.ask(request("GET", "/", ("host", "a"), actor.header))
        assert answer.status == 200
        return stage.api.calls[actor.ref] == 3

    await eventually(asked_again)
    assert sent > 3


@pytest.mark.conformance("I-15")
@pytest.mark.only("agentgateway")
@pytest.mark.router(cache_entries=64)
async def test_the_cache_is_bounded_in_entries(stage: Stage) -> None:
    origin = await stage.origin(echo)
    actors = [stage.actor_at(origin.address) for _ in range(256)]
    connection = await stage.http1()
    for _ in range(2):
        for actor in actors:
            answer = await connection.ask(request("GET", "/", ("host", "a"), actor.header))
            assert answer.status == 200
    calls = sum(stage.api.calls[actor.ref] for actor in actors)
    # At most 64 of the second round's can be remembered.
    assert calls >= 256 + 256 - 64


@pytest.mark.conformance("I-15", "I-06")
@pytest.mark.only("agentgateway")
async def test_direct_and_tunnelled_requests_share_one_cache(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    assert (await stage.get(actor)).status == 200
    inside = await RawHttp1.open(stage.router.connect)
    stage.closing(inside.close)
    await inside.send(request("CONNECT", "x:80", ("host", "x:80"), actor.header))
    assert (await inside.head()).status == 200
    assert (await inside.ask(request("GET", "/", ("host", "a")))).status == 200
    assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-20")
@pytest.mark.router(park_budget=0.4)
async def test_a_resume_in_the_air_is_not_cut_by_the_budget(stage: Stage) -> None:
    # B022: a late success is served, so that no actor is stranded half resumed.
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, resumed(actor.place, after=1.5))
    assert (await stage.get(actor)).status == 200
    assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-20")
@pytest.mark.router(park_budget=0.4)
async def test_a_retry_in_the_air_at_the_budgets_end_is_not_cut_either(stage: Stage) -> None:
    # B022: the worker frees late, the restore outlives the budget.
    actor, _ = await stage.actor(echo)
    stage.api.script(actor.ref, no_room(), no_room(), resumed(actor.place, after=1.0))
    assert (await stage.get(actor)).status == 200
    assert stage.api.calls[actor.ref] == 3


@pytest.mark.conformance("I-20", "I-19")
@pytest.mark.router(park_budget=0.4)
async def test_no_attempt_starts_after_the_budget(stage: Stage) -> None:
    # B022
    ref = new_ref()
    stage.api.script(ref, no_room())
    assert (await stage.get(ref)).status == stage.dataplane.no_capacity_status
    calls = stage.api.calls[ref]
    await asyncio.sleep(0.5)
    assert stage.api.calls[ref] == calls
