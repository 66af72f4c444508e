"""gRPC through the router: four shapes, trailers, and no silent downgrade."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from tests.support import raw_h2
from tests.support.grpc_origin import GrpcOrigin, method
from tests.support.origins import answering, echo
from tests.support.raw_h2 import StreamResetError
from tests.support.resume_steps import failure, no_room, resumed
from tests.support.stage import Actor, Stage

pytestmark = pytest.mark.router(park_budget=0.6)

LIMIT = 20.0


async def running(stage: Stage) -> tuple[Actor, GrpcOrigin]:
    origin = await stage.grpc_origin()
    return stage.actor_at(origin.address), origin


async def unary(stage: Stage, actor: Actor | str, name: str = "Unary") -> bytes:
    ref = actor if isinstance(actor, str) else actor.ref
    call = stage.grpc_channel().unary_unary(method(name))
    answer: bytes = await call(b"hello", metadata=[("ate-target-actor", ref)], timeout=LIMIT)
    return answer


async def code_of(stage: Stage, actor: Actor | str) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await unary(stage, actor)
    code: grpc.StatusCode = refusal.value.code()
    return code


@pytest.mark.conformance("I-08")
async def test_a_unary_call_is_answered_with_its_trailers(stage: Stage) -> None:
    # B007
    actor, origin = await running(stage)
    call = stage.grpc_channel().unary_unary(method("Unary"))(
        b"hello", metadata=[actor.header], timeout=LIMIT
    )
    assert await call == b"echo:hello"
    assert dict(await call.trailing_metadata())["x-echo-trailer"] == "kept"
    assert "ate-target-actor" not in origin.metadata[0]


@pytest.mark.conformance("I-08")
async def test_application_metadata_reaches_the_actor(stage: Stage) -> None:
    actor, origin = await running(stage)
    call = stage.grpc_channel().unary_unary(method("Unary"))
    await call(b"", metadata=[actor.header, ("x-tenant", "blue")], timeout=LIMIT)
    assert origin.metadata[0]["x-tenant"] == "blue"


@pytest.mark.conformance("I-08")
async def test_a_server_stream_delivers_every_message(stage: Stage) -> None:
    actor, _ = await running(stage)
    call = stage.grpc_channel().unary_stream(method("Down"))(
        b"50", metadata=[actor.header], timeout=LIMIT
    )
    assert [message async for message in call] == [str(number).encode() for number in range(50)]
    assert dict(await call.trailing_metadata())["x-echo-trailer"] == "kept"


@pytest.mark.conformance("I-08")
async def test_a_client_stream_delivers_every_message(stage: Stage) -> None:
    actor, _ = await running(stage)

    async def messages() -> AsyncIterator[bytes]:
        for number in range(50):
            yield b"%d." % number

    call = stage.grpc_channel().stream_unary(method("Up"))
    answer = await call(messages(), metadata=[actor.header], timeout=LIMIT)
    assert answer == b"".join(b"%d." % number for number in range(50))


@pytest.mark.conformance("I-08")
async def test_a_bidirectional_stream_answers_each_message_as_it_comes(stage: Stage) -> None:
    # B007
    actor, _ = await running(stage)
    call = stage.grpc_channel().stream_stream(method("Both"))(
        metadata=[actor.header], timeout=LIMIT
    )
    for number in range(10):
        await call.write(b"%d" % number)
        assert await call.read() == b"echo:%d" % number
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


@pytest.mark.conformance("I-08")
async def test_the_actors_own_refusal_comes_through(stage: Stage) -> None:
    actor, _ = await running(stage)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await unary(stage, actor, "Fail")
    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert refusal.value.details() == "the actor's own refusal"
    assert dict(refusal.value.trailing_metadata())["x-echo-trailer"] == "kept"


@pytest.mark.conformance("I-08")
async def test_an_http1_actor_fails_grpc_loudly(stage: Stage) -> None:
    # B007: never downgraded in silence.
    actor, origin = await stage.actor(answering(200, b"ok", ("content-type", "application/grpc")))
    assert await code_of(stage, actor) is grpc.StatusCode.UNAVAILABLE
    assert not [head for head in origin.heads if head.method == "POST"]


@pytest.mark.conformance("I-08")
async def test_an_http2_request_reaches_an_http1_actor(stage: Stage) -> None:
    # B007
    actor, origin = await stage.actor(echo)
    answer = await (await stage.http2()).ask(raw_h2.get("/plain", actor.ref))
    assert answer.status == 200
    assert origin.heads[0].start == "GET /plain HTTP/1.1"


@pytest.mark.conformance("I-08", "I-14")
async def test_a_stream_to_a_sleeping_actor_is_sent_once(stage: Stage) -> None:
    # B036: readiness is found without the user's request.
    actor, origin = await running(stage)
    stage.api.script(actor.ref, no_room(), resumed(actor.place, after=0.2))
    call = stage.grpc_channel().stream_stream(method("Both"))(
        metadata=[actor.header], timeout=LIMIT
    )
    await call.write(b"first")
    assert await call.read() == b"echo:first"
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert origin.calls == 1


@pytest.mark.conformance("I-08", "I-33")
async def test_a_cancelled_call_is_cancelled_at_the_actor(stage: Stage) -> None:
    actor, origin = await running(stage)
    call = stage.grpc_channel().stream_stream(method("Held"))(
        metadata=[actor.header], timeout=LIMIT
    )
    await call.write(b"first")
    assert await call.read() == b"echo:first"
    call.cancel()
    async with asyncio.timeout(LIMIT):
        await origin.cancelled.wait()


REFUSALS = {
    grpc.StatusCode.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.FAILED_PRECONDITION: grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED: grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS: grpc.StatusCode.INTERNAL,
}


@pytest.mark.conformance("I-24", "I-23")
@pytest.mark.parametrize(("said", "told"), REFUSALS.items(), ids=[code.name for code in REFUSALS])
async def test_a_grpc_caller_gets_the_matching_status(
    stage: Stage, said: grpc.StatusCode, told: grpc.StatusCode
) -> None:
    actor, origin = await running(stage)
    stage.api.script(actor.ref, failure(said))
    assert await code_of(stage, actor) is told
    assert origin.calls == 0


@pytest.mark.conformance("I-24", "I-23")
async def test_a_grpc_caller_is_told_that_there_is_no_room(stage: Stage) -> None:
    actor, _ = await running(stage)
    stage.api.script(actor.ref, no_room())
    assert (await code_of(stage, actor)).name == stage.dataplane.no_capacity_grpc


@pytest.mark.conformance("I-24", "I-01")
async def test_a_grpc_caller_that_names_nobody_gets_not_found(stage: Stage) -> None:
    assert await code_of(stage, "demo") is grpc.StatusCode.NOT_FOUND


@pytest.mark.conformance("I-24")
async def test_a_grpc_refusal_is_trailers_only(stage: Stage) -> None:
    connection = await stage.http2()
    fields = raw_h2.fields(
        "POST", method("Unary"), "demo", ("content-type", "application/grpc"), ("te", "trailers")
    )
    try:
        answer = await connection.ask(fields, b"\0\0\0\0\0")
    except StreamResetError:
        pytest.fail("reset instead of an answer")
    assert (answer.status, answer.get("grpc-status"), answer.get("ate-reason")) == (
        200,
        "5",
        "bad-target",
    )
    assert (answer.get("content-type") or "").startswith("application/grpc")
    assert (bytes(answer.data), answer.trailers) == (b"", [])
