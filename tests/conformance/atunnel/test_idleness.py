"""When an actor is idle, and that its ingress closes in one step with finding that out: T-05."""

import asyncio
import contextlib

import pytest
from h2.exceptions import StreamClosedError

from tests.conformance.atunnel.conftest import Serve, Worker, eventually
from tests.support.actor_network import ActorNetwork
from tests.support.eventually import within
from tests.support.router_peer import STALE, RouterPeer

GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Actor:
    """Answers each request with the pieces that the test lets out, one for each `release`."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self._gate = asyncio.Semaphore(0)
        self.asked = 0

    def release(self, count: int = 1) -> None:
        for _ in range(count):
            self._gate.release()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.asked += 1
                for piece in self._pieces:
                    await self._gate.acquire()
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def closes(worker: Worker, name: str, *, uid: str = "1", seconds: float = 0.0) -> bool:
    return worker.tunnel.close_if_idle("team", name, uid, idle_seconds=seconds)


@pytest.mark.conformance("T-05")
async def test_an_actor_that_thinks_in_silence_is_in_use_and_a_kept_connection_is_not(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, serve: Serve
) -> None:
    actor = Actor(WHOLE)
    await serve(shared_network.listen(80), actor)
    worker.activate("a", shared_network)
    tunnel = await router.open("team/a")
    assert worker.actor("a")["in_flight"] == 0
    for _ in range(2):
        await router.send(tunnel, GET)
        await eventually(lambda: worker.actor("a")["in_flight"] == 1)
        assert worker.actor("a")["idle_ms"] == 0
        assert not closes(worker, "a")
        actor.release()
        assert await router.receive(tunnel, len(WHOLE)) == WHOLE
        assert worker.actor("a")["in_flight"] == 0
    assert worker.actor("a")["tunnels"] == 1, "the connection is kept"
    await eventually(lambda: worker.actor("a")["idle_ms"] >= 20)
    assert not closes(worker, "a", seconds=60)
    assert not closes(worker, "a", uid="2")
    assert worker.actor("a")["open"]
    assert closes(worker, "a", seconds=0.02)
    refused = await router.request("team/a")
    assert (refused.status, refused.get(STALE)) == (421, "true")
    # A request that was on its way through the kept connection still has its grace.
    await router.send(tunnel, GET)
    await eventually(lambda: actor.asked == 3)
    ending = asyncio.create_task(worker.deactivate("a", grace=60.0))
    actor.release()
    assert await router.receive(tunnel, len(WHOLE)) == WHOLE
    # Behind its answer the connection ends by itself.
    await router.ended(tunnel)
    await within(ending, 30)


@pytest.mark.conformance("T-05")
@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\ndata: 1\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the close",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
    ],
    ids=["event stream", "websocket", "until close", "half a body", "interim"],
)
async def test_a_response_that_has_only_begun_is_use(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, serve: Serve, begun: bytes
) -> None:
    actor = Actor(begun)
    await serve(shared_network.listen(80), actor)
    worker.activate("a", shared_network)
    tunnel = await router.open("team/a")
    await router.send(tunnel, GET)
    actor.release()
    assert await router.receive(tunnel, len(begun)) == begun
    assert not closes(worker, "a")
    # It ends with its connection, whoever leaves.
    router.h2.h2.reset_stream(tunnel.id)
    await router.h2.flush()
    await eventually(lambda: worker.actor("a")["tunnels"] == 0)
    assert closes(worker, "a")


@pytest.mark.conformance("T-05")
async def test_no_request_comes_between_the_question_and_the_answer(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, serve: Serve
) -> None:
    """Each request is answered whole or turned away with 421, whenever ingress closes."""
    actor = Actor(WHOLE)
    actor.release(10_000)
    await serve(shared_network.listen(80), actor)
    outcomes = {200: 0, 421: 0}
    for round_ in range(20):
        uid = str(round_ + 1)
        worker.activate("a", shared_network, uid)

        async def ask() -> int:
            answer = await router.request("team/a")
            if answer.status == 200:
                await router.send(answer, GET)
                assert await router.receive(answer, len(WHOLE)) == WHOLE
                # A suspend may have ended it behind its answer already.
                with contextlib.suppress(StreamClosedError):
                    await router.send(answer, b"", end=True)
            else:
                assert answer.get(STALE) == "true"
            return answer.status

        asked = [asyncio.create_task(ask()) for _ in range(4)]
        await eventually(lambda uid=uid: closes(worker, "a", uid=uid))
        ending = asyncio.create_task(worker.deactivate("a", uid, grace=60.0))
        asked += [asyncio.create_task(ask()) for _ in range(2)]
        for status in await asyncio.gather(*asked):
            outcomes[status] += 1
        await within(ending, 30)
    assert sum(outcomes.values()) == 120
    assert outcomes[421] >= 40, "those that came after"
