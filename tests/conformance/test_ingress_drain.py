"""SIGTERM: readiness off, everything that runs or waits is finished, then gone."""

import asyncio

import pytest

from tests.support import raw_h2
from tests.support.bulk_origins import event_stream, until_gone
from tests.support.eventually import eventually
from tests.support.origins import answering, echo, held
from tests.support.raw_http1 import RawHttp1, request
from tests.support.resume_steps import no_room, resumed
from tests.support.stage import Stage

pytestmark = pytest.mark.conformance("I-36")

LIMIT = 30.0


async def draining(stage: Stage) -> None:
    """SIGTERM was sent and the router says so."""
    stage.router.process.terminate()

    async def not_ready() -> bool:
        return await stage.router.ready() == 503

    await eventually(not_ready)


async def test_a_serving_router_is_ready_and_healthy(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    assert await stage.router.ready() == 200
    assert await stage.router.process.stop() == 0


async def test_readiness_ends_at_once_and_serving_goes_on_for_the_delay(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(drain_delay=3.0)
    actor, _ = await stage.actor(echo)
    kept = await stage.http1()
    await draining(stage)
    # New connections and kept ones alike.
    answer = await stage.get(actor)
    assert answer.status == 200
    answer = await kept.ask(request("GET", "/", ("host", "a"), actor.header))
    assert (answer.status, answer.head.get("connection")) in ((200, None), (200, "keep-alive"))
    assert stage.router.process.returncode is None
    assert await stage.router.process.wait() == 0


async def test_whoever_reached_the_readiness_page_is_answered_to_the_end(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    host, _, port = stage.router.readiness.rpartition(":")
    stage.router.process.terminate()
    statuses = [200]
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            break
        writer.write(b"GET /readyz HTTP/1.1\r\nhost: router\r\nconnection: close\r\n\r\n")
        try:
            answer = await reader.read()
        except ConnectionResetError:
            # The kernel had accepted it while the last page was closed: nobody answers there.
            with pytest.raises(OSError):
                await asyncio.open_connection(host, int(port))
            break
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head.lower()
        statuses.append(int(head.split()[1]))
    # Ready, then not ready, then gone.
    assert statuses == sorted(statuses)
    assert set(statuses) <= {200, 503}
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_an_empty_router_exits_early(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(drain_timeout=600.0)
    stage.router.process.terminate()
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_parked_running_and_idle_are_each_treated_as_promised(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B139: one request parked, one streaming, one idle keep-alive.
    stage: Stage = await own_stage(park_budget=10.0)
    sleeper, _ = await stage.actor(answering(200, b"woken"))
    stage.api.script(sleeper.ref, no_room())
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    streamer, _ = await stage.actor(event_stream(lines))
    other, _ = await stage.actor(echo)

    idle = await stage.http1()
    assert (await idle.ask(request("GET", "/", ("host", "a"), other.header))).status == 200
    parked = asyncio.create_task(stage.get(sleeper))
    await stage.api.wait_for_calls(sleeper.ref, 2)
    wire = await stage.http2()
    stream = await wire.start(raw_h2.get("/", streamer.ref))
    lines.put_nowait(b"before")
    await wire.wait(lambda: b"before" in stream.data)

    await draining(stage)
    assert await idle.rest() == b""
    await wire.wait(lambda: wire.goaway is not None)
    lines.put_nowait(b"after")
    await wire.wait(lambda: b"after" in stream.data)
    stage.api.script(sleeper.ref, resumed(sleeper.place))
    assert (await parked).data == b"woken"
    assert stage.router.process.returncode is None
    lines.put_nowait(None)
    assert (await wire.response(stream)).ended
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_an_http1_response_in_flight_says_connection_close(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    gate = asyncio.Event()
    actor, origin = await stage.actor(held(gate, answering(200, b"finished")))
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    await origin.wait_for_requests(1)
    await draining(stage)
    gate.set()
    answer = await connection.response()
    assert (answer.data, answer.head.get("connection")) == (b"finished", "close")
    assert await connection.rest() == b""
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_an_upload_in_flight_is_finished(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    actor, origin = await stage.actor(echo)
    connection = await stage.http1()
    await connection.send(
        request("POST", "/", ("host", "a"), actor.header, ("content-length", "6")) + b"abc"
    )
    await origin.wait_for_requests(1)
    await draining(stage)
    await connection.send(b"def")
    assert b"abcdef" in (await connection.response()).data
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_a_websocket_in_flight_may_end_by_itself(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    origin = await stage.websocket_origin()
    actor = stage.actor_at(origin.address)
    connection = await stage.http1()
    upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    await connection.send(request("GET", "/", ("host", "a"), actor.header, *upgrade))
    assert (await connection.head()).status == 101
    await draining(stage)
    await connection.send(b"\x81\x85\0\0\0\0hello")
    assert await connection.reader.readexactly(7) == b"\x81\x05hello"
    await connection.close()
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_what_does_not_end_is_reset_at_the_drain_timeout(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(park_budget=0.5, drain_timeout=1.5)
    actor, origin = await stage.actor(until_gone)
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    await connection.head()
    await draining(stage)
    assert await stage.router.process.wait(limit=LIMIT) == 0
    await origin.wait_no_connections()


async def test_a_connect_tunnel_that_idles_does_not_hold_the_exit(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(drain_timeout=600.0)
    actor, _ = await stage.actor(echo)
    inside = await RawHttp1.open(stage.router.connect)
    stage.closing(inside.close)
    await inside.send(request("CONNECT", "x:80", ("host", "x:80"), actor.header))
    assert (await inside.head()).status == 200
    assert (await inside.ask(request("GET", "/", ("host", "a")))).status == 200
    stage.router.process.terminate()
    assert await stage.router.process.wait(limit=LIMIT) == 0


async def test_a_second_signal_ends_it_at_once(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(drain_timeout=600.0)
    actor, origin = await stage.actor(until_gone)
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    await connection.head()
    await draining(stage)
    stage.router.process.terminate()
    assert await stage.router.process.wait(limit=LIMIT) == 0
    await origin.wait_no_connections()
