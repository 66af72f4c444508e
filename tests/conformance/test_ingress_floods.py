"""The same floods on every listener: a closed connection, memory that stays where it was, no slot kept."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import h2.exceptions
import pytest
import pytest_asyncio

from tests.support.endpoint import Endpoint
from tests.support.eventually import eventually
from tests.support.origins import echo
from tests.support.raw_h2 import RawH2
from tests.support.raw_http1 import RawHttp1
from tests.support.resume_steps import no_room
from tests.support.stage import Stage, new_ref

pytestmark = [
    pytest.mark.conformance("I-12"),
    pytest.mark.only("agentgateway"),
    pytest.mark.router(header_limit=0.5),
]

FLAT = 48 << 20
LISTENERS = ("web", "connect", "plain", "plain_connect")

PING = b"\0\0\x08\x06\0\0\0\0\0" + b"pingpong"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
EMPTY_DATA = b"\0\0\0\0\0\0\0\0\x01"


def _continuation() -> bytes:
    block = b"\x00\x05x-fil\x7f\x81\x7e" + b"v" * 253
    return len(block).to_bytes(3, "big") + b"\x09\0\0\0\0\x01" + block


async def many_frames(wire: RawH2, frame: bytes) -> None:
    for _ in range(20):
        await wire.send_raw(frame * 1000)


async def pings(wire: RawH2, _ref: str, _connect: bool) -> None:
    await many_frames(wire, PING)


async def settings(wire: RawH2, _ref: str, _connect: bool) -> None:
    await many_frames(wire, SETTINGS)


async def continuations(wire: RawH2, _ref: str, _connect: bool) -> None:
    await wire.send_raw(b"\0\0\x01\x01\0\0\0\0\x01\x82")
    for _ in range(50):
        await wire.send_raw(_continuation() * 100)


async def empty_data(wire: RawH2, ref: str, connect: bool) -> None:
    await wire.start(_fields(ref, connect), end=False)
    await many_frames(wire, EMPTY_DATA)


async def rapid_resets(wire: RawH2, ref: str, connect: bool) -> None:
    for _ in range(500):
        await wire.reset(await wire.start(_fields(ref, connect), end=not connect))


async def header_lists(wire: RawH2, ref: str, connect: bool) -> None:
    more = [(f"x-{number}", "v" * 250) for number in range(300)]
    for _ in range(2):
        await wire.start([*_fields(ref, connect), *more], end=not connect)


FLOODS: list[Callable[[RawH2, str, bool], Awaitable[None]]] = [
    pings,
    settings,
    continuations,
    empty_data,
    rapid_resets,
    header_lists,
]


def _fields(ref: str, connect: bool) -> list[tuple[str, str]]:
    target = ("ate-target-actor", ref)
    if connect:
        return [(":method", "CONNECT"), (":authority", "x:80"), target]
    asked = {":method": "GET", ":scheme": "https", ":authority": "a", ":path": "/"}
    return [*asked.items(), target]


@pytest_asyncio.fixture(loop_scope="session")
async def flooded(stage: Stage) -> AsyncIterator[Stage]:
    """Checks afterwards that memory, connections and parking places are what they were, and that it still serves."""

    async def counted(name: str) -> float:
        return (await stage.router.metrics()).sum(name)

    open_before = await counted("atenet_router_client_connections")
    memory = stage.router.process.resident_bytes
    yield stage
    assert stage.router.process.resident_bytes - memory < FLAT

    async def nothing_kept() -> bool:
        parked = await counted("atenet_router_parking_active")
        return parked == 0 and await counted("atenet_router_client_connections") <= open_before

    await eventually(nothing_kept)
    actor, _ = await stage.actor(echo)
    assert (await stage.get(actor)).status == 200


def _endpoint(stage: Stage, listener: str) -> Endpoint:
    endpoint = getattr(stage.router, listener)
    assert isinstance(endpoint, Endpoint)
    return endpoint


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("flood", FLOODS, ids=[flood.__name__ for flood in FLOODS])
async def test_an_http2_flood_is_harmless(
    flooded: Stage,
    listener: str,
    flood: Callable[[RawH2, str, bool], Awaitable[None]],
) -> None:
    ref = new_ref()
    flooded.api.script(ref, no_room())
    wire = await RawH2.open(_endpoint(flooded, listener))
    with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
        await flood(wire, ref, "connect" in listener)
    await wire.close()


@pytest.mark.parametrize("listener", LISTENERS)
async def test_dripping_heads_are_given_up(flooded: Stage, listener: str) -> None:
    wires = [await RawHttp1.open(_endpoint(flooded, listener)) for _ in range(20)]

    async def drip(wire: RawHttp1) -> None:
        with contextlib.suppress(OSError):
            await wire.send(b"GET / HTTP/1.1\r\n")
            while not wire.reader.at_eof():
                await wire.send(b"x-drip: 1\r\n")
                await asyncio.sleep(0.1)

    drips = [asyncio.create_task(drip(wire)) for wire in wires]
    # The router ends each; nobody else does.
    await asyncio.gather(*(wire.rest() for wire in wires))
    await asyncio.gather(*drips)
    for wire in wires:
        await wire.close()


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_flood_of_header_lines_is_431(flooded: Stage, listener: str) -> None:
    async with await RawHttp1.open(_endpoint(flooded, listener)) as wire:
        await wire.send(b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * 20_000)
        assert (await wire.rest()).startswith(b"HTTP/1.1 431 ")
