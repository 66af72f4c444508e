"""The bytes of a tunnel: T-07."""

import asyncio
import hashlib
import os
import socket
import struct

import h2.errors
import psutil
import pytest
import pytest_asyncio

from tests.conformance.atunnel.conftest import Serve, Worker, echo, eventually
from tests.support.actor_network import ActorNetwork
from tests.support.eventually import within
from tests.support.raw_h2 import RawH2
from tests.support.router_peer import (
    RouterPeer,
    connect_fields,
    connect_head,
    endpoint,
    http1_peer,
    router_peer,
)

NO_ERROR = int(h2.errors.ErrorCodes.NO_ERROR)
CONNECT_ERROR = int(h2.errors.ErrorCodes.CONNECT_ERROR)
MIB = 1 << 20
STREAM_WINDOW = MIB // 2


def abort(writer: asyncio.StreamWriter) -> None:
    """A TCP reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


class Actor:
    """An actor whose one connection the test drives itself."""

    def __init__(self) -> None:
        self._connections: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.Queue()
        )

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._connections.put((reader, writer))

    async def connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(20):
            return await self._connections.get()


@pytest_asyncio.fixture(loop_scope="session")
async def actor(worker: Worker, shared_network: ActorNetwork, serve: Serve) -> Actor:
    driven = Actor()
    await serve(shared_network.listen(80), driven.accept)
    worker.activate("driven", shared_network)
    return driven


@pytest.mark.conformance("T-07")
async def test_the_actors_end_leaves_the_upload_running(router: RouterPeer, actor: Actor) -> None:
    tunnel = await router.open("team/driven")
    reader, writer = await actor.connection()
    writer.write(b"answer")
    writer.write_eof()
    await router.ended(tunnel)
    assert bytes(tunnel.data) == b"answer"
    upload = os.urandom(16 * MIB)
    sending = asyncio.create_task(router.send(tunnel, upload, end=True))
    received = await within(reader.read(), 60)
    await sending
    assert hashlib.sha256(received).digest() == hashlib.sha256(upload).digest()
    writer.close()


@pytest.mark.conformance("T-07")
async def test_the_routers_end_leaves_the_download_running(
    router: RouterPeer, actor: Actor
) -> None:
    tunnel = await router.open("team/driven")
    reader, writer = await actor.connection()
    await router.send(tunnel, b"question", end=True)
    assert await within(reader.read(), 10) == b"question"
    download = os.urandom(16 * MIB)
    writer.write(download)
    writer.close()
    await router.ended(tunnel)
    assert hashlib.sha256(tunnel.data).digest() == hashlib.sha256(download).digest()


@pytest.mark.conformance("T-07")
async def test_the_tail_of_an_answer_that_closes_is_whole_each_time(
    router: RouterPeer, actor: Actor
) -> None:
    answer = os.urandom(4 * MIB)
    for _ in range(25):
        tunnel = await router.open("team/driven", early=b"question")
        reader, writer = await actor.connection()
        assert await reader.readexactly(8) == b"question"
        writer.write(answer)
        writer.close()
        await router.ended(tunnel)
        assert tunnel.data == answer
        await router.send(tunnel, b"", end=True)


@pytest.mark.conformance("T-07")
async def test_bytes_for_an_actor_that_closed_end_the_tunnel_without_an_error(
    worker: Worker, router: RouterPeer, actor: Actor
) -> None:
    tunnel = await router.open("team/driven")
    _, writer = await actor.connection()
    writer.write(b"all of it")
    writer.close()
    await router.ended(tunnel)
    assert bytes(tunnel.data) == b"all of it"
    # The answer was whole, so what nobody reads is no failure of it: NO_ERROR asks the router to stop.
    await router.send(tunnel, b"more")
    await router.send(tunnel, b"and more")
    await router.h2.wait(lambda: tunnel.reset is not None)
    assert tunnel.reset == NO_ERROR
    assert worker.actor("driven")["tunnels"] == 0


@pytest.mark.conformance("T-07")
async def test_the_actors_reset_is_a_connect_error(router: RouterPeer, actor: Actor) -> None:
    tunnel = await router.open("team/driven")
    _, writer = await actor.connection()
    writer.write(b"half of it")
    assert await router.receive(tunnel, 10) == b"half of it"
    abort(writer)
    assert await router.was_reset(tunnel) == CONNECT_ERROR


@pytest.mark.conformance("T-07")
async def test_the_routers_reset_is_a_reset(router: RouterPeer, actor: Actor) -> None:
    tunnel = await router.open("team/driven")
    reader, writer = await actor.connection()
    await router.send(tunnel, b"half of it")
    assert await reader.readexactly(10) == b"half of it"
    await router.h2.reset(tunnel)
    with pytest.raises(ConnectionResetError):
        await within(reader.read(), 10)
    writer.close()


@pytest.mark.conformance("T-07")
async def test_a_router_that_vanishes_is_a_reset(worker: Worker, actor: Actor) -> None:
    async with router_peer(worker.address, worker.pki) as router:
        await router.open("team/driven")
        reader, writer = await actor.connection()
    with pytest.raises(ConnectionResetError):
        await within(reader.read(), 10)
    writer.close()


@pytest.mark.conformance("T-07")
async def test_a_reset_reaches_an_actor_that_does_not_read(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork
) -> None:
    with shared_network.listen(80, receive_buffer=4096) as listener:
        worker.activate("deaf", shared_network)
        tunnel = await router.open("team/deaf")
        # More than the kernel takes, less than the window: some of it waits in the worker.
        await router.send(tunnel, bytes(STREAM_WINDOW - 1))
        await router.h2.reset(tunnel)
        await eventually(lambda: worker.actor("deaf")["tunnels"] == 0)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            with pytest.raises(ConnectionResetError):
                read_all(connection)


@pytest.mark.conformance("T-07")
async def test_early_bytes_are_kept_until_the_actor_is_there(
    router: RouterPeer, actor: Actor
) -> None:
    early = os.urandom(200_000)
    tunnel = await router.open("team/driven", early=early)
    reader, writer = await actor.connection()
    assert await within(reader.readexactly(len(early)), 10) == early
    await router.send(tunnel, b"then", end=True)
    assert await within(reader.read(), 10) == b"then"
    writer.close()


@pytest.mark.conformance("T-07")
async def test_early_bytes_behind_an_http1_head_are_kept(worker: Worker, actor: Actor) -> None:
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head("team/driven", "x:80") + b"hello")
        reader, writer = await actor.connection()
        assert await within(reader.readexactly(5), 10) == b"hello"
        writer.write(b"bye")
        writer.close()
        assert (await wire.head()).status == 200
        assert await wire.rest() == b"bye"


@pytest.mark.conformance("T-07")
async def test_early_bytes_of_a_declined_tunnel_are_thrown_away(
    router: RouterPeer, actor: Actor
) -> None:
    declined = await router.request("team/nobody", early=b"x" * 10_000)
    assert declined.status == 421
    await router.h2.wait(lambda: declined.over)
    # The connection and its window are as good as before.
    tunnel = await router.open("team/driven", early=b"fresh")
    reader, writer = await actor.connection()
    assert await reader.readexactly(5) == b"fresh"
    writer.close()
    await router.ended(tunnel)


@pytest.mark.conformance("T-07")
async def test_a_stopped_router_throttles_the_actor(
    worker: Worker, shared_network: ActorNetwork
) -> None:
    """1 GiB at a reader that reads nothing: memory is the windows', and others go on."""
    total = 1 << 30
    with shared_network.listen(81) as listener:
        listener.setblocking(True)
        worker.activate("fast", shared_network)
        async with await RawH2.open(
            endpoint(worker.address, worker.pki, worker.pki.router), read_all=False
        ) as h2:
            stopped = await h2.start(connect_fields("team/fast", "x:81"), end=False)
            await h2.head(stopped)
            connection, _ = await asyncio.to_thread(listener.accept)
            with connection:
                connection.setblocking(False)
                before, sent, chunk = resident(), 0, bytes(MIB)
                quiet = 0
                while quiet < 20 and sent < total:
                    try:
                        sent += connection.send(chunk)
                        quiet = 0
                    except BlockingIOError:
                        quiet += 1
                        await asyncio.sleep(0.01)
                assert sent < total, "nobody throttled it"
                # The client's window is 64 KiB; the kernel's buffers are no process's memory.
                assert resident() - before < 8 * MIB
                other = await h2.start(connect_fields("team/fast", "x:81"), end=False)
                assert (await h2.head(other)).status == 200


@pytest.mark.conformance("T-07")
async def test_a_stopped_actor_throttles_the_router_and_no_other_tunnel(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, serve: Serve
) -> None:
    await serve(shared_network.listen(80), echo)
    with shared_network.listen(81) as deaf:
        worker.activate("mixed", shared_network)
        stopped = await router.open("team/mixed", 81)
        await router.send(stopped, bytes(STREAM_WINDOW))
        sending = asyncio.create_task(router.send(stopped, bytes(64 * MIB)))
        # All that fits is on its way once the window is spent and stays spent.
        spent = 0
        while spent < 20:
            spent = spent + 1 if router.h2.h2.local_flow_control_window(stopped.id) == 0 else 0
            await asyncio.sleep(0.01)
        for _ in range(50):
            small = await router.open("team/mixed", early=b"small")
            assert await within(router.receive(small, 5), 5) == b"small"
            await router.h2.reset(small)
        assert not sending.done()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        deaf.close()


@pytest.mark.conformance("T-07")
async def test_http1_half_closes_and_resets(worker: Worker, actor: Actor) -> None:
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head("team/driven", "x:80"))
        assert (await wire.head()).status == 200
        _, writer = await actor.connection()
        abort(writer)
        with pytest.raises(ConnectionResetError):
            await within(wire.reader.read(), 10)
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head("team/driven", "x:80"))
        assert (await wire.head()).status == 200
        reader, writer = await actor.connection()
        wire.abort()
        with pytest.raises(ConnectionResetError):
            await within(reader.read(), 10)
        writer.close()


@pytest.mark.conformance("T-07")
async def test_http1_carries_much_both_ways(worker: Worker, actor: Actor) -> None:
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head("team/driven", "x:80"))
        assert (await wire.head()).status == 200
        reader, writer = await actor.connection()
        up, down = os.urandom(8 * MIB), os.urandom(8 * MIB)
        sending = asyncio.gather(wire.send(up), _send_all(writer, down))
        received = await asyncio.gather(
            reader.readexactly(len(up)), wire.reader.readexactly(len(down))
        )
        await sending
        assert received == [up, down]
        writer.close()


async def _send_all(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@pytest.mark.conformance("T-07")
async def test_ten_thousand_tunnels_leave_nothing_behind(
    worker: Worker, router: RouterPeer, echo_actor: str
) -> None:
    async def many(count: int) -> None:
        """A hundred at a time: opened with a byte and an end, every third one reset at once."""
        h2 = router.h2
        for _ in range(0, count, 100):
            tunnels = [
                await h2.start(connect_fields(echo_actor, "x:80"), end=False) for _ in range(100)
            ]
            for number, tunnel in enumerate(tunnels):
                if number % 3 == 0:
                    h2.h2.reset_stream(tunnel.id)
                    tunnel.reset = 0
                else:
                    h2.h2.send_data(tunnel.id, b"x", end_stream=True)
            await h2.flush()
            await h2.wait(lambda tunnels=tunnels: all(tunnel.over for tunnel in tunnels))
            assert all(tunnel.data == b"x" for tunnel in tunnels if tunnel.ended)
            assert sum(tunnel.ended for tunnel in tunnels) == 66

    await many(100)
    await eventually(lambda: worker.stats()["tunnels"]["open"] == 0)
    before = psutil.Process().num_fds()
    await many(10_000)
    await eventually(lambda: worker.stats()["tunnels"]["open"] == 0)
    await eventually(lambda: psutil.Process().num_fds() <= before)
    # One that is reset while it is dialled is never opened; all that ended cleanly were.
    assert worker.stats()["tunnels"]["total"] >= 101 * 66
