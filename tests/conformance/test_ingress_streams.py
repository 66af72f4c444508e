"""Long, large, slow and broken streams: bounded memory, no false ends, nobody else held up."""

import asyncio
import hashlib

import pytest

from tests.support import raw_h2
from tests.support.bulk_origins import (
    BLOCK,
    cut_short,
    download,
    event_stream,
    measure_upload,
    pattern_digest,
    until_gone,
)
from tests.support.eventually import eventually
from tests.support.http1_message import chunk
from tests.support.origins import Exchange, answering, echo
from tests.support.raw_h2 import StreamResetError
from tests.support.raw_http1 import request
from tests.support.stage import Stage

MIB = 1 << 20
LIMIT = 30.0
# Windows, buffers and the allocator's slack of a few streams; far below what is carried.
FLAT = 64 * MIB


@pytest.mark.conformance("I-11")
async def test_each_event_arrives_before_the_next_is_sent(stage: Stage) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    actor, _ = await stage.actor(event_stream(lines))
    connection = await stage.http2()
    stream = await connection.start(raw_h2.get("/events", actor.ref))
    for number in range(5):
        expected = b"data: %d\n\n" % number
        lines.put_nowait(b"%d" % number)
        await connection.wait(lambda expected=expected: stream.data.endswith(expected))  # type: ignore[misc]
    lines.put_nowait(None)
    assert (await connection.response(stream)).ended


async def _digest_of_download(stage: Stage, actor_header: tuple[str, str]) -> tuple[str, int]:
    """Reads a body in pieces; its SHA-256 and the router's highest memory meanwhile."""
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor_header))
    left = (await connection.head()).length or 0
    digest, highest = hashlib.sha256(), 0
    while left:
        data = await connection.reader.read(min(left, MIB))
        assert data, "the body ended early"
        digest.update(data)
        left -= len(data)
        highest = max(highest, stage.router.process.resident_bytes)
    return digest.hexdigest(), highest


@pytest.mark.conformance("I-11")
async def test_a_large_download_is_whole_and_memory_stays_flat(stage: Stage) -> None:
    size = 1024 * MIB
    actor, _ = await stage.actor(download(size))
    before = stage.router.process.resident_bytes
    digest, highest = await _digest_of_download(stage, actor.header)
    assert digest == pattern_digest(size)
    assert highest - before < FLAT


@pytest.mark.conformance("I-11")
async def test_a_large_upload_is_whole_and_memory_stays_flat(stage: Stage) -> None:
    size = 1024 * MIB
    actor, _ = await stage.actor(measure_upload)
    before, highest = stage.router.process.resident_bytes, 0
    connection = await stage.http1()
    await connection.send(
        request("PUT", "/", ("host", "a"), actor.header, ("content-length", str(size)))
    )
    for _ in range(size // len(BLOCK)):
        await connection.send(BLOCK)
        highest = max(highest, stage.router.process.resident_bytes)
    answer = await connection.response()
    assert answer.data.decode() == f"{size} {pattern_digest(size)}"
    assert highest - before < FLAT


@pytest.mark.conformance("I-11")
async def test_a_reader_that_stops_throttles_the_actor_and_costs_windows_only(stage: Stage) -> None:
    # B052: the actor sends as fast as it can, the client reads nothing.
    sent = 0

    async def firehose(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await exchange.send(chunk(BLOCK))
            sent += len(BLOCK)

    actor, _ = await stage.actor(firehose)
    before = stage.router.process.resident_bytes
    connection = await stage.http2(read_all=False)
    stream = await connection.start(raw_h2.get("/", actor.ref))
    await connection.head(stream)
    seen = -1
    while seen != sent:
        seen = sent
        await asyncio.sleep(0.5)
    # Windows of two hops, relays' buffers and the kernel's: far below what it would send.
    assert sent < 64 * MIB
    assert stage.router.process.resident_bytes - before < FLAT


@pytest.mark.conformance("I-11")
async def test_a_stopped_reader_does_not_stall_others_on_the_same_worker(stage: Stage) -> None:
    # B051: ten downloads of which one is not read, small requests beside them.
    bulk, _ = await stage.actor(download(16 * MIB))
    small, _ = await stage.actor(echo)
    stopped = await stage.http2(read_all=False)
    await stopped.head(await stopped.start(raw_h2.get("/", bulk.ref)))
    async with asyncio.TaskGroup() as group:
        downloads = [group.create_task(_digest_of_download(stage, bulk.header)) for _ in range(9)]
        answers = [group.create_task(stage.get(small)) for _ in range(50)]
    assert {task.result().status for task in answers} == {200}
    assert {task.result()[0] for task in downloads} == {pattern_digest(16 * MIB)}


@pytest.mark.conformance("I-11")
async def test_a_stopped_stream_does_not_stall_others_on_its_own_client_connection(
    stage: Stage,
) -> None:
    bulk, _ = await stage.actor(download(16 * MIB))
    small, _ = await stage.actor(echo)
    connection = await stage.http2(read_all=False)
    await connection.head(await connection.start(raw_h2.get("/", bulk.ref)))
    # The bulk stream has filled the client's own connection window: room for the small answers.
    connection.h2.increment_flow_control_window(MIB)
    await connection.flush()
    for _ in range(10):
        assert (await connection.ask(raw_h2.get("/", small.ref))).status == 200


@pytest.mark.conformance("I-11")
async def test_a_body_that_ends_with_the_connection_arrives_whole(stage: Stage) -> None:
    actor, _ = await stage.actor(download(3 * MIB + 17, close=True))
    answer = await stage.get(actor)
    assert hashlib.sha256(answer.data).hexdigest() == pattern_digest(3 * MIB + 17)


@pytest.mark.conformance("I-11")
async def test_the_tail_of_a_large_answer_survives_the_actors_close(stage: Stage) -> None:
    # B060
    size = 16 * MIB
    actor, _ = await stage.actor(download(size, chunked=True, close=True))
    for _ in range(10):
        answer = await stage.get(actor)
        assert hashlib.sha256(answer.data).hexdigest() == pattern_digest(size)


@pytest.mark.conformance("I-11")
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_body_cut_short_is_never_a_clean_end(stage: Stage, reset: bool) -> None:
    # B057
    actor, _ = await stage.actor(cut_short(1000, 10, reset=reset))
    connection = await stage.http2()
    stream = await connection.start(raw_h2.get("/", actor.ref))
    try:
        answer = await connection.response(stream)
    except StreamResetError:
        return
    # A reset may overtake the head; then the caller is told so.
    assert answer.status == stage.dataplane.broke_off_status


@pytest.mark.conformance("I-11")
@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\npart",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n",
    ],
    ids=["close-delimited", "chunked"],
)
async def test_an_actors_reset_is_never_a_clean_end(stage: Stage, head: bytes) -> None:
    # B057
    gate = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(head)
        await gate.wait()
        exchange.reset()

    actor, _ = await stage.actor(handler)
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    answer = await connection.head()
    assert answer.status == 200
    await connection.reader.readuntil(b"part")
    gate.set()
    if answer.chunked:
        assert b"\r\n0\r\n" not in await connection.rest()
    else:
        # Only a reset tells a cut from an end here.
        with pytest.raises(OSError):
            await connection.reader.read()


@pytest.mark.conformance("I-11")
async def test_an_actors_reset_resets_the_http2_stream(stage: Stage) -> None:
    # B057
    gate = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        await gate.wait()
        exchange.reset()

    actor, _ = await stage.actor(handler)
    connection = await stage.http2()
    stream = await connection.start(raw_h2.get("/", actor.ref))
    await connection.wait(lambda: bytes(stream.data) == b"part")
    gate.set()
    with pytest.raises(StreamResetError):
        await connection.response(stream)


@pytest.mark.conformance("I-11")
async def test_an_upload_runs_on_after_the_actor_answered_and_closed_its_side(stage: Stage) -> None:
    # B061: each direction closes on its own.
    async def hasty(exchange: Exchange) -> None:
        await exchange.answer(200, b"enough", ("connection", "close"))
        exchange.writer.write_eof()
        await exchange.read_body()
        exchange.keep_alive = False

    actor, origin = await stage.actor(hasty)
    connection = await stage.http2()
    stream = await connection.start(
        raw_h2.fields("POST", "/", actor.ref, ("content-length", str(MIB))), end=False
    )
    await connection.head(stream)
    await connection.send(stream, b"u" * MIB, end=True)
    await eventually(lambda: origin.exchanges[0].body is not None)
    assert origin.exchanges[0].body == b"u" * MIB


@pytest.mark.conformance("I-33")
@pytest.mark.router(stream_idle=1.0)
async def test_a_stream_that_moves_is_never_cut(stage: Stage) -> None:
    # B001, B017: longer than the idle limit in all, never idle that long.
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    actor, _ = await stage.actor(event_stream(lines))
    connection = await stage.http2()
    stream = await connection.start(raw_h2.get("/", actor.ref))
    for number in range(12):
        lines.put_nowait(b"%d" % number)
        await asyncio.sleep(0.25)
    lines.put_nowait(None)
    answer = await connection.response(stream)
    assert bytes(answer.data) == b"".join(b"data: %d\n\n" % number for number in range(12))


@pytest.mark.conformance("I-33")
@pytest.mark.router(stream_idle=1.0)
async def test_a_stream_that_went_silent_ends_after_the_idle_limit(stage: Stage) -> None:
    # B017
    actor, origin = await stage.actor(until_gone)
    connection = await stage.http2()
    stream = await connection.start(raw_h2.get("/", actor.ref))
    await connection.wait(lambda: bytes(stream.data) == b"first")
    with pytest.raises(StreamResetError):
        await connection.response(stream)
    await origin.wait_no_connections()


@pytest.mark.conformance("I-33", "I-23")
@pytest.mark.router(stream_idle=1.0)
async def test_an_actor_silent_past_the_idle_limit_is_a_504(stage: Stage) -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.reader.read(1)
        exchange.keep_alive = False

    actor, _ = await stage.actor(never)
    answer = await stage.get(actor)
    assert (answer.status, answer.head.get("ate-reason")) == (504, "idle-timeout")


@pytest.mark.conformance("I-33")
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
async def test_when_a_client_gives_up_the_actors_stream_is_reset_and_nobody_gets_its_answer(
    stage: Stage, version: str
) -> None:
    # B001
    async def slow_for_one(exchange: Exchange) -> None:
        if exchange.path == "/1":
            await exchange.reader.read(1)
            exchange.keep_alive = False
            return
        await exchange.answer(200, exchange.path.encode())

    actor, origin = await stage.actor(slow_for_one)
    if version == "HTTP/2":
        connection = await stage.http2()
        stream = await connection.start(raw_h2.get("/1", actor.ref))
        await origin.wait_for_requests(1)
        await connection.reset(stream)
    else:
        wire = await stage.http1()
        await wire.send(request("GET", "/1", ("host", "a"), actor.header))
        await origin.wait_for_requests(1)
        wire.abort()
    await origin.wait_no_connections()
    assert (await stage.get(actor, "/2")).data == b"/2"


@pytest.mark.conformance("I-33")
async def test_a_client_that_closes_politely_while_waiting_ends_the_actors_stream(
    stage: Stage,
) -> None:
    actor, origin = await stage.actor(until_gone)
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    await origin.wait_for_requests(1)
    await connection.close()
    await origin.wait_no_connections()


@pytest.mark.conformance("I-33")
async def test_a_long_turn_is_answered(stage: Stage) -> None:
    # B001: no total deadline on a live response.
    async def turn(exchange: Exchange) -> None:
        await asyncio.sleep(12)
        await exchange.answer(200, b"done")

    actor, _ = await stage.actor(turn)
    assert (await stage.get(actor)).data == b"done"


@pytest.mark.conformance("I-33", "I-11")
async def test_an_actor_that_ends_without_a_word_is_a_502(stage: Stage) -> None:
    async def mute(exchange: Exchange) -> None:
        exchange.keep_alive = False

    actor, origin = await stage.actor(mute)
    answer = await stage.request(actor, "POST", "/", body=b"once")
    assert (answer.status, answer.head.get("ate-reason")) == (502, "actor-connect-failed")
    assert len(origin.exchanges) == 1


@pytest.mark.conformance("I-11")
async def test_an_answer_that_is_no_http_is_a_502(stage: Stage) -> None:
    async def noise(exchange: Exchange) -> None:
        await exchange.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        exchange.keep_alive = False

    actor, _ = await stage.actor(noise)
    assert (await stage.get(actor)).status == 502


@pytest.mark.conformance("I-23")
async def test_a_port_where_nothing_listens_is_a_502(stage: Stage) -> None:
    origin = await stage.origin(answering())
    await origin.close()
    answer = await stage.get(stage.actor_at(origin.address))
    assert (answer.status, answer.head.get("ate-reason")) == (502, "actor-connect-failed")
