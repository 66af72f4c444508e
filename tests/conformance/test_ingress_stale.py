"""Stale assignments and workers that are gone: look again, never twice half, never for ever."""

import asyncio
import contextlib
import json

import pytest

from tests.support.addresses import bound_socket
from tests.support.dead_worker import BlackHole, SilentWorker, refusing_address
from tests.support.http1_message import LAST_CHUNK, chunk
from tests.support.origins import answering, echo
from tests.support.raw_http1 import request
from tests.support.resume_steps import resumed, running
from tests.support.scripted_worker import relaying, stale
from tests.support.stage import Stage
from tests.support.tunnel_stream import TunnelStream, relay

LIMIT = 30.0
# Attempts end a search for a worker, not the park budget.
PATIENT = pytest.mark.router(park_budget=600.0, drain_timeout=700.0)


@pytest.mark.conformance("I-29")
@pytest.mark.only("agentgateway")
async def test_a_stale_assignment_is_dropped_and_looked_up_again(stage: Stage) -> None:
    # B031
    origin = await stage.origin(echo)
    old, new = (
        await stage.scripted_worker(stale),
        await stage.scripted_worker(relaying(origin.address)),
    )
    actor = stage.actor_on(old.ip)
    stage.api.script(actor.ref, running(actor.place), resumed(actor.place.moved(new.ip)))
    assert (await stage.get(actor)).status == 200
    assert (stage.api.calls[actor.ref], len(old.tunnels)) == (2, 1)
    # The new answer is the cached one now.
    assert (await stage.get(actor)).status == 200
    assert (stage.api.calls[actor.ref], len(old.tunnels)) == (2, 1)


@pytest.mark.conformance("I-29", "I-13")
@pytest.mark.only("agentgateway")
async def test_an_actor_suspended_behind_the_caches_back_is_resumed(stage: Stage) -> None:
    # B031: request 1 fills the cache, then the actor is suspended, then request 2.
    actor, origin = await stage.actor(echo)
    assert actor.activation is not None
    assert (await stage.get(actor)).status == 200
    await stage.worker.deactivate(actor.activation)
    place = actor.place.resumed_here()

    async def resume():  # type: ignore[no-untyped-def]
        assert actor.activation is not None
        stage.worker.activate(actor.ref, origin.address, uid=actor.activation.uid)
        return await resumed(place)()

    stage.api.script(actor.ref, resume, running(place))
    assert (await stage.get(actor)).status == 200
    assert stage.api.calls[actor.ref] == 2


@pytest.mark.conformance("I-29", "I-13")
@pytest.mark.only("agentgateway")
async def test_twenty_suspends_each_followed_by_a_request_at_once_give_twenty_200s(
    stage: Stage,
) -> None:
    # B030
    actor, origin = await stage.actor(echo)
    assert actor.activation is not None
    place = actor.place
    connection = await stage.http1()
    statuses = []
    for _ in range(20):
        await stage.worker.deactivate(actor.activation)
        place = place.resumed_here()

        async def resume(place=place):  # type: ignore[no-untyped-def]
            assert actor.activation is not None
            stage.worker.activate(actor.ref, origin.address, uid=actor.activation.uid)
            return await resumed(place)()

        stage.api.script(actor.ref, resume, running(place))
        statuses.append(
            (await connection.ask(request("GET", "/", ("host", "a"), actor.header))).status
        )
    assert statuses == [200] * 20


@pytest.mark.conformance("I-29")
@pytest.mark.only("agentgateway")
async def test_a_control_plane_that_repeats_the_old_worker_for_a_while_is_asked_again(
    stage: Stage,
) -> None:
    # B032: no hot loop, and found in the end.
    origin = await stage.origin(echo)
    old, new = (
        await stage.scripted_worker(stale),
        await stage.scripted_worker(relaying(origin.address)),
    )
    actor = stage.actor_on(old.ip)

    async def settle() -> None:
        await asyncio.sleep(0.3)
        stage.api.place(actor.place.moved(new.ip))

    settling = asyncio.create_task(settle())
    assert (await stage.get(actor)).status == 200
    await settling
    assert stage.api.calls[actor.ref] <= 8


@pytest.mark.conformance("I-29")
@pytest.mark.only("agentgateway")
@PATIENT
async def test_an_assignment_that_never_settles_is_a_503_and_the_421_stays_inside(
    stage: Stage,
) -> None:
    # B018, B032
    worker = await stage.scripted_worker(stale)
    actor = stage.actor_on(worker.ip)
    answer = await stage.get(actor)
    assert (answer.status, answer.head.get("ate-reason")) == (503, "stale-assignment")
    assert answer.head.get("retry-after") is not None
    assert not [name for name in answer.head.names if name.startswith("x-ate-")]
    assert len(worker.tunnels) == 3
    # Asked again after each attempt, and a little later for another worker: no hot loop.
    assert 3 <= stage.api.calls[actor.ref] <= 6


@pytest.mark.conformance("I-29")
@pytest.mark.parametrize(
    "fields",
    [(), (("x-ate-assignment-stale", "true"),)],
    ids=["a plain 421", "a 421 that claims to be stale"],
)
async def test_an_actors_own_421_passes_untouched_and_evicts_nothing(
    stage: Stage, fields: tuple[tuple[str, str], ...]
) -> None:
    # B018
    actor, origin = await stage.actor(answering(421, b"wrong door", *fields))
    for _ in range(2):
        answer = await stage.get(actor)
        assert (answer.status, answer.data) == (421, b"wrong door")
    assert len(origin.exchanges) == 2
    if stage.dataplane.caches:
        assert stage.api.calls[actor.ref] == 1


@pytest.mark.conformance("I-29")
@pytest.mark.only("agentgateway")
async def test_a_late_stale_answer_does_not_drop_a_newer_entry(stage: Stage) -> None:
    origin = await stage.origin(echo)
    held, release = asyncio.Event(), asyncio.Event()

    async def first_late(stream: TunnelStream) -> None:
        if not held.is_set():
            held.set()
            await release.wait()
        await stale(stream)

    old, new = (
        await stage.scripted_worker(first_late),
        await stage.scripted_worker(relaying(origin.address)),
    )
    actor = stage.actor_on(old.ip)
    slow = asyncio.create_task(stage.get(actor))
    await held.wait()
    stage.api.place(actor.place.moved(new.ip))
    assert (await stage.get(actor)).status == 200
    calls = stage.api.calls[actor.ref]
    release.set()
    assert (await slow).status == 200
    assert stage.api.calls[actor.ref] == calls


@pytest.mark.conformance("I-29", "I-32")
@pytest.mark.only("agentgateway")
@pytest.mark.parametrize("size", [16 * 1024, 1024 * 1024])
async def test_a_body_survives_a_stale_worker_byte_for_byte(stage: Stage, size: int) -> None:
    # B042: never a short body.
    origin = await stage.origin(echo)
    old, new = (
        await stage.scripted_worker(stale),
        await stage.scripted_worker(relaying(origin.address)),
    )
    actor = stage.actor_on(old.ip)
    stage.api.script(actor.ref, running(actor.place), running(actor.place.moved(new.ip)))
    connection = await stage.http1()
    head = request("POST", "/", ("host", "a"), actor.header, ("transfer-encoding", "chunked"))
    await connection.send(head + chunk(b"b" * size) + LAST_CHUNK)
    answer = await connection.response()
    assert answer.status == 200
    assert json.loads(answer.data)["body"] == "b" * size
    assert len(origin.exchanges) == 1


@pytest.mark.conformance("I-31")
@pytest.mark.parametrize("kind", ["black hole", "refuses"])
async def test_a_dead_worker_is_left_for_the_one_that_the_control_plane_names_now(
    stage: Stage, kind: str
) -> None:
    # B029
    origin = await stage.origin(echo)
    dead = refusing_address()
    if kind == "black hole":
        hole = BlackHole()
        stage.closing(hole.close)
        dead = hole.ip
    new = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(dead)
    stage.api.script(actor.ref, running(actor.place), running(actor.place.moved(new.ip)))
    answer = await stage.get(actor)
    if not stage.dataplane.caches:
        assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
        answer = await stage.get(actor)
    assert answer.status == 200


@pytest.mark.conformance("I-31")
@pytest.mark.only("agentgateway")
@pytest.mark.router(cache_ttl=60.0)
async def test_other_actors_entries_outlive_a_dead_worker(stage: Stage) -> None:
    # B029
    other, _ = await stage.actor(echo)
    assert (await stage.get(other)).status == 200
    dead = stage.actor_on(refusing_address())
    assert (await stage.get(dead)).status == 503
    assert (await stage.get(other)).status == 200
    assert stage.api.calls[other.ref] == 1


@pytest.mark.conformance("I-31", "I-23")
@PATIENT
@pytest.mark.parametrize("kind", ["black hole", "refuses"])
async def test_a_worker_that_stays_dead_is_a_503(stage: Stage, kind: str) -> None:
    dead = refusing_address()
    if kind == "black hole":
        hole = BlackHole()
        stage.closing(hole.close)
        dead = hole.ip
    answer = await stage.get(stage.actor_on(dead))
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    assert answer.head.get("retry-after") is not None


@pytest.mark.conformance("I-31")
@pytest.mark.router(handshake_timeout=0.5)
async def test_a_silent_handshake_wedges_nobody_and_the_first_request_after_it_works(
    stage: Stage,
) -> None:
    # B047
    origin = await stage.origin(echo)
    silent = await SilentWorker.start()
    stage.closing(silent.close)
    actor = stage.actor_on(silent.ip)
    answers = await stage.many(50, actor)
    assert {(answer.status, answer.head.get("ate-reason")) for answer in answers} == {
        (503, "worker-unreachable")
    }
    await silent.close()
    await stage.scripted_worker(relaying(origin.address), ip=silent.ip)
    assert (await stage.get(actor)).status == 200


@pytest.mark.conformance("I-31")
@pytest.mark.router(handshake_timeout=0.5)
async def test_settings_that_never_come_count_as_the_handshake(stage: Stage) -> None:
    # B047: TLS completes, HTTP/2 does not.
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(4096):
                pass
        writer.close()

    server = await asyncio.start_server(
        mute, sock=bound_socket(8443), ssl=stage.pki.worker_server()
    )
    stage.closing(server.close)
    answer = await stage.get(stage.actor_on(server.sockets[0].getsockname()[0]))
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")


@pytest.mark.conformance("I-31")
@pytest.mark.router(handshake_timeout=0.5)
async def test_a_client_that_leaves_a_dead_worker_leaves_nothing_behind(stage: Stage) -> None:
    # B053: a queued request whose client leaves is dropped.
    silent = await SilentWorker.start()
    stage.closing(silent.close)
    actor = stage.actor_on(silent.ip)
    for _ in range(20):
        leaver = await stage.http1()
        await leaver.send(request("GET", "/", ("host", "a"), actor.header))
        leaver.abort()
    other, _ = await stage.actor(echo)
    assert (await stage.get(other)).status == 200


@pytest.mark.conformance("I-31", "I-26")
@pytest.mark.router(handshake_timeout=1.0)
async def test_a_pooled_connection_whose_worker_vanished_is_noticed(stage: Stage) -> None:
    # B049: no FIN, no RST; then another worker has the address.
    origin = await stage.origin(echo)
    frozen = asyncio.Event()

    async def answer(stream: TunnelStream) -> None:
        if frozen.is_set():
            await stream.connection.frozen()
        await relay(stream, origin.address)

    old, new = (
        await stage.scripted_worker(answer),
        await stage.scripted_worker(relaying(origin.address)),
    )
    actor = stage.actor_on(old.ip)
    other = stage.actor_on(old.ip)
    assert (await stage.get(actor)).status == 200
    frozen.set()
    stage.api.script(other.ref, running(other.place), running(other.place.moved(new.ip)))
    status = (await stage.get(other)).status
    if not stage.dataplane.caches:
        assert status == 503
        status = (await stage.get(other)).status
    assert status == 200
