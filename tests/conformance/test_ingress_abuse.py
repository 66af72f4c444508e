"""Hostile clients: each costs a closed connection at most, never memory, a slot, or the process."""

import asyncio
import contextlib

import pytest

from tests.support import raw_h2
from tests.support.dataplanes import Dataplane
from tests.support.eventually import eventually
from tests.support.origins import answering, echo
from tests.support.raw_h2 import RawH2, StreamResetError
from tests.support.raw_http1 import RawHttp1, request
from tests.support.resume_steps import no_room
from tests.support.stage import Stage, new_ref

pytestmark = pytest.mark.conformance("I-12")

MIB = 1 << 20
FLAT = 48 * MIB

PING = b"\0\0\x08\x06\0\0\0\0\0" + b"pingpong"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
PRIORITY = b"\0\0\x05\x02\0\0\0\0\x01" + b"\0\0\0\0\x10"


def window_update(stream: int, increment: int) -> bytes:
    return b"\0\0\x04\x08\0" + stream.to_bytes(4, "big") + increment.to_bytes(4, "big")


async def still_serves(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    assert (await stage.get(actor)).status == 200


@pytest.mark.parametrize(
    "fields",
    [[("x-large", "x" * 200_000)], [(f"x-{number}", "1") for number in range(3000)]],
    ids=["one huge field", "very many fields"],
)
async def test_a_head_that_is_too_large_is_431(stage: Stage, fields: list[tuple[str, str]]) -> None:
    actor, origin = await stage.actor(echo)
    answer = await stage.ask(request("GET", "/", ("host", "a"), actor.header, *fields))
    assert (answer.status, answer.head.get("ate-reason")) == (431, "head-too-large")
    assert origin.exchanges == []


@pytest.mark.only("agentgateway")
@pytest.mark.router(header_fields=300)
@pytest.mark.parametrize("protocol", ["http1", "http2"])
async def test_a_head_has_as_many_fields_as_the_operator_allows(
    stage: Stage, protocol: str
) -> None:
    actor, origin = await stage.actor(answering())
    # The host and the actor's name count as well; over HTTP/2 the host is no field.
    for more, status in ((300 - 2, 200), (300 + 1, 431)):
        fields = [(f"x-{number}", "1") for number in range(more)]
        if protocol == "http1":
            answer = await stage.ask(request("GET", "/", ("host", "a"), actor.header, *fields))
            assert answer.status == status
        else:
            assert await stage.http2_status(raw_h2.get("/", actor.ref, *fields)) == status
    assert len(origin.exchanges) == 1


async def test_a_target_that_is_too_large_is_refused(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    answer = await stage.request(actor, "GET", "/" + "x" * 200_000)
    assert answer.status in (414, 431)
    assert origin.exchanges == []


async def test_an_http2_head_that_is_too_large_is_refused(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    connection = await stage.http2()
    fields = [(f"x-{number}", "v" * 100) for number in range(3000)]
    with contextlib.suppress(StreamResetError):
        assert (await connection.ask(raw_h2.get("/", actor.ref, *fields))).status == 431
    assert origin.exchanges == []
    await still_serves(stage)


@pytest.mark.router(header_limit=0.5)
async def test_a_head_that_never_ends_is_given_up(stage: Stage) -> None:
    connection = await stage.http1()
    await connection.send(b"GET / HTTP/1.1\r\nhost: a\r\n")
    dripping = asyncio.create_task(_drip(connection))
    rest = await connection.rest()
    dripping.cancel()
    assert rest == b"" or rest.startswith(b"HTTP/1.1 408")


async def _drip(connection: RawHttp1) -> None:
    with contextlib.suppress(OSError):
        while True:
            await connection.send(b"x-drip: 1\r\n")
            await asyncio.sleep(0.1)


async def test_a_preface_that_never_comes_is_given_up(own_stage, dataplane: Dataplane) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(**{dataplane.mute_client_limit: 0.5})
    wire = await RawHttp1.open(stage.router.web, alpn=["h2"])
    stage.closing(wire.close)
    # The server's own preface at most, then its end.
    assert b"HTTP/1.1" not in await wire.rest()


@pytest.mark.router(client_idle=0.5)
async def test_an_idle_connection_is_closed(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    connection = await stage.http1()
    ask = request("GET", "/", ("host", "a"), actor.header)
    assert (await connection.ask(ask)).status == 200
    assert await connection.rest() == b""


FLOODS = {
    "pings": PING,
    "settings": SETTINGS,
    "priorities": PRIORITY,
    "window updates of nothing known": window_update(0, 1),
}


@pytest.mark.parametrize("frame", FLOODS.values(), ids=FLOODS.keys())
async def test_a_flood_of_cheap_frames_is_harmless(stage: Stage, frame: bytes) -> None:
    before = stage.router.process.resident_bytes
    connection = await RawH2.open(stage.router.web)
    stage.closing(connection.close)
    with contextlib.suppress(OSError):
        for _ in range(50):
            await connection.send_raw(frame * 1000)
    assert stage.router.process.resident_bytes - before < FLAT
    await still_serves(stage)


async def test_a_flood_of_answers_that_are_not_read_is_bounded(stage: Stage) -> None:
    # Each ping wants an answer that the client never reads.
    before = stage.router.process.resident_bytes
    wire = await RawHttp1.open(stage.router.web, alpn=["h2"], receive_buffer=4096)
    stage.closing(wire.close)
    await wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS)
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(3):
            for _ in range(2000):
                await wire.send(PING * 1000)
    assert stage.router.process.resident_bytes - before < FLAT
    await still_serves(stage)


async def test_a_header_block_that_never_ends_is_cut(stage: Stage) -> None:
    # A CONTINUATION flood.
    before = stage.router.process.resident_bytes
    connection = await RawH2.open(stage.router.web)
    stage.closing(connection.close)
    headers = b"\0\0\x01\x01\0\0\0\0\x01\x82"
    block = b"\x00\x05x-fil\x7f\x81\x7e" + b"v" * 253
    continuation = len(block).to_bytes(3, "big") + b"\x09\0\0\0\0\x01" + block
    with contextlib.suppress(OSError):
        await connection.send_raw(headers)
        for _ in range(500):
            await connection.send_raw(continuation * 100)
    assert stage.router.process.resident_bytes - before < FLAT
    await eventually(lambda: connection.closed)
    await still_serves(stage)


async def test_rapid_resets_leave_no_work_behind(stage: Stage) -> None:
    ref = new_ref()
    stage.api.script(ref, no_room())
    before = stage.router.process.resident_bytes
    connection = await RawH2.open(stage.router.web)
    stage.closing(connection.close)
    with contextlib.suppress(OSError, Exception):
        for _ in range(3000):
            stream = await connection.start(raw_h2.get("/", ref))
            await connection.reset(stream)
    assert stage.router.process.resident_bytes - before < FLAT

    async def none_parked() -> bool:
        return (await stage.router.metrics()).sum("atenet_router_parking_active") == 0

    await eventually(none_parked)
    await still_serves(stage)


async def test_more_streams_than_allowed_are_refused_not_queued(stage: Stage) -> None:
    ref = new_ref()
    stage.api.script(ref, no_room())
    connection = await stage.http2()
    await connection.wait(lambda: connection.h2.remote_settings.max_concurrent_streams < 2**31)
    allowed = connection.h2.remote_settings.max_concurrent_streams
    assert 1 <= allowed <= 1024


@pytest.mark.parametrize(
    "noise",
    [b"\x16\x03\x01\xff\xff" + b"\0" * 500, b"\0" * 1000, b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"],
    ids=["a broken ClientHello", "zeros", "a broken preface"],
)
@pytest.mark.router(header_limit=0.5, tls_handshake=0.5)
async def test_noise_on_any_listener_ends_in_a_close(stage: Stage, noise: bytes) -> None:
    router = stage.router
    listeners = (router.web, router.connect, router.plain, router.plain_connect)
    for endpoint in filter(None, listeners):
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        writer.write(noise)
        with contextlib.suppress(OSError):
            async with asyncio.timeout(30):
                await reader.read()
        writer.close()
    await still_serves(stage)


async def test_a_client_that_vanishes_mid_upload_leaves_no_stream(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    for _ in range(20):
        connection = await RawHttp1.open(stage.router.web)
        head = request("POST", "/", ("host", "a"), actor.header, ("content-length", "1000000"))
        await connection.send(head + b"partial")
        connection.abort()
        await connection.close()
    await origin.wait_no_connections()
