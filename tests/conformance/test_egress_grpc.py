"""gRPC out of an actor, through intercepted TLS to an origin that speaks HTTP/2."""

from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from tests.support.egress_stage import EgressStage, https
from tests.support.grpc_origin import SERVICE
from tests.support.origins import echo

pytestmark = pytest.mark.conformance("E-21")

LIMIT = 20.0


def method(name: str) -> str:
    return f"/{SERVICE}/{name}"


async def messages() -> AsyncIterator[bytes]:
    for _ in range(100):
        yield b"x" * 1000


async def test_all_four_shapes_pass_with_their_trailers(egress: EgressStage) -> None:
    name, _, port = await egress.grpc_service()
    channel = await egress.grpc_channel(egress.actor(https(name, ports=[port])), name, port)
    call = channel.unary_unary(method("Unary"))(b"hello", timeout=LIMIT)
    assert await call == b"echo:hello"
    assert dict(await call.trailing_metadata())["x-echo-trailer"] == "kept"
    down = channel.unary_stream(method("Down"))(b"3", timeout=LIMIT)
    assert [message async for message in down] == [b"0", b"1", b"2"]
    assert len(await channel.stream_unary(method("Up"))(messages(), timeout=LIMIT)) == 100_000
    both = channel.stream_stream(method("Both"))(messages(), timeout=LIMIT)
    assert len([message async for message in both]) == 100


async def test_an_origins_own_refusal_passes(egress: EgressStage) -> None:
    name, _, port = await egress.grpc_service()
    channel = await egress.grpc_channel(egress.actor(https(name, ports=[port])), name, port)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary(method("Fail"))(b"", timeout=LIMIT)
    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.conformance("E-22")
async def test_a_denied_call_is_told_in_grpcs_own_terms(egress: EgressStage) -> None:
    name, origin, port = await egress.grpc_service()
    actor = egress.actor(https(name, ports=[port]))
    channel = await egress.grpc_channel(actor, name, port)
    call = channel.unary_unary(method("Unary"))
    assert await call(b"a", timeout=LIMIT) == b"echo:a"
    egress.api.allow(actor, https("other.example"))
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call(b"b", timeout=LIMIT)
    assert refusal.value.code() in (
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAVAILABLE,  # the whole tunnel ended first: its rule is gone
    )
    assert origin.calls == 1


async def test_an_origin_without_http2_is_not_spoken_to_in_anything_less(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(echo)
    channel = await egress.grpc_channel(
        egress.actor(https(name, ports=[origin.port])), name, origin.port
    )
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary(method("Unary"))(b"", timeout=LIMIT)
    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert origin.exchanges == []
