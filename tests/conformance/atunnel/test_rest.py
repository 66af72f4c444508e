"""A suspend ends what carries nothing at once, and what does behind its last byte: T-05."""

import asyncio
import time

import pytest
import pytest_asyncio

from tests.conformance.atunnel.conftest import Serve, Worker
from tests.support.actor_network import ActorNetwork
from tests.support.eventually import within
from tests.support.http1_message import read_head
from tests.support.router_peer import RouterPeer, connect_head, http1_peer

pytestmark = pytest.mark.conformance("T-05")

GRACE = 60.0
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
BEGUN = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf "
REST = b"whole"


class HalvedAnswers:
    """An actor that sends each answer in two halves, the second when told; it notes how its connections end."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.endings: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await read_head(reader) is not None:
                writer.write(BEGUN)
                await self.go_on.wait()
                writer.write(REST)
                await writer.drain()
            self.endings.put_nowait("end")
        except ConnectionResetError:
            self.endings.put_nowait("reset")
        finally:
            writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def actor(worker: Worker, shared_network: ActorNetwork, serve: Serve) -> HalvedAnswers:
    answers = HalvedAnswers()
    await serve(shared_network.listen(80), answers)
    worker.activate("kept", shared_network)
    return answers


async def test_a_kept_connection_that_carries_nothing_is_ended_at_once(
    worker: Worker, router: RouterPeer, actor: HalvedAnswers
) -> None:
    actor.go_on.set()
    tunnel = await router.open("team/kept", early=GET)
    assert await router.receive(tunnel, len(BEGUN + REST)) == BEGUN + REST
    start = time.monotonic()
    assert await worker.deactivate("kept", grace=GRACE) is True
    assert time.monotonic() - start < GRACE / 2
    # Nothing was lost, so nobody is told of a reset.
    await router.ended(tunnel)
    assert await within(actor.endings.get(), 10) == "end"


async def test_a_busy_connection_is_ended_behind_the_last_byte_of_its_answer(
    worker: Worker, router: RouterPeer, actor: HalvedAnswers
) -> None:
    tunnel = await router.open("team/kept", early=GET)
    assert await router.receive(tunnel, len(BEGUN)) == BEGUN
    ending = asyncio.create_task(worker.deactivate("kept", grace=GRACE))
    start = time.monotonic()
    await asyncio.sleep(0.1)
    assert not ending.done()
    actor.go_on.set()
    assert await router.receive(tunnel, len(REST)) == REST
    await router.ended(tunnel)
    assert await ending is True
    assert time.monotonic() - start < GRACE / 2
    assert await within(actor.endings.get(), 10) == "end"


async def test_the_same_over_http1(worker: Worker, actor: HalvedAnswers) -> None:
    actor.go_on.set()
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head("team/kept", "x:80") + GET)
        assert (await wire.head()).status == 200
        assert await wire.reader.readexactly(len(BEGUN + REST)) == BEGUN + REST
        start = time.monotonic()
        assert await worker.deactivate("kept", grace=GRACE) is True
        assert time.monotonic() - start < GRACE / 2
        assert await within(wire.reader.read(), 10) == b""


async def test_a_connection_on_which_nothing_was_said_yet_has_the_grace(
    worker: Worker, router: RouterPeer, actor: HalvedAnswers
) -> None:
    # Its request is on the way; or it is no HTTP at all.
    actor.go_on.set()
    tunnel = await router.open("team/kept")
    ending = asyncio.create_task(worker.deactivate("kept", grace=GRACE))
    await asyncio.sleep(0.1)
    assert not ending.done()
    await router.send(tunnel, GET)
    assert await router.receive(tunnel, len(BEGUN + REST)) == BEGUN + REST
    await router.ended(tunnel)
    assert await ending is True
