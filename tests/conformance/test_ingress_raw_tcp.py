"""Bytes that are no HTTP inside a client's CONNECT: relayed to the actor's port, whoever speaks first."""

import asyncio
import ssl

import pytest

from tests.support.addresses import bound_socket
from tests.support.eventually import eventually, within
from tests.support.pki import WORKER_ID
from tests.support.raw_h2 import RawH2, StreamResetError
from tests.support.raw_http1 import RawHttp1, request
from tests.support.stage import Actor, Stage

pytestmark = [pytest.mark.conformance("I-41"), pytest.mark.only("agentgateway")]

PORT = 2525
LIMIT = 20.0
MIB = 1 << 20


class TcpActor:
    """An actor's port of any protocol; `serve` is its whole conversation."""

    def __init__(self, serve, context: ssl.SSLContext | None = None) -> None:  # type: ignore[no-untyped-def]
        self._serve, self._context = serve, context
        self.endings: asyncio.Queue[str] = asyncio.Queue()
        self.address = ""
        self.connections = 0

    async def start(self, stage: Stage) -> Actor:
        listener = bound_socket(PORT)
        self.address = listener.getsockname()[0]
        server = await asyncio.start_server(self._accept, sock=listener, ssl=self._context)
        stage.closing(server.close)
        return stage.actor_at(self.address)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
            self.endings.put_nowait("end")
        except ConnectionError:
            self.endings.put_nowait("reset")
        finally:
            writer.close()


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each line in capitals, and the end with a last word."""
    while line := await reader.readline():
        writer.write(line.upper())
    writer.write(b"bye\n")
    await writer.drain()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks first, as SMTP does."""
    writer.write(b"220 ready\r\n")
    await shout(reader, writer)


async def opened(stage: Stage, actor: Actor, *, plain: bool = False) -> RawHttp1:
    endpoint = stage.router.plain_connect if plain else stage.router.connect
    assert endpoint is not None
    wire = await RawHttp1.open(endpoint)
    stage.closing(wire.close)
    await wire.send(request("CONNECT", f"x:{PORT}", ("host", "x"), actor.header))
    assert (await wire.head()).status == 200
    return wire


@pytest.mark.parametrize("plain", [False, True], ids=["over TLS", "in plaintext"])
async def test_a_client_that_speaks_first_reaches_the_port(stage: Stage, plain: bool) -> None:
    actor = await TcpActor(shout).start(stage)
    wire = await opened(stage, actor, plain=plain)
    for word in (b"\x00\x01binary\n", b"more\n"):
        await wire.send(word)
        assert await wire.reader.readline() == word.upper()
    assert stage.api.calls[actor.ref] == 1


async def test_an_actor_that_speaks_first_is_heard(stage: Stage) -> None:
    actor = await TcpActor(greet).start(stage)
    wire = await opened(stage, actor)
    async with asyncio.timeout(LIMIT):
        assert await wire.reader.readline() == b"220 ready\r\n"
    await wire.send(b"helo\n")
    assert await wire.reader.readline() == b"HELO\n"


async def test_tls_inside_is_the_clients_and_the_actors_own(stage: Stage) -> None:
    server = stage.pki.worker_server()
    actor = await TcpActor(shout, server).start(stage)
    wire = await opened(stage, actor, plain=True)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(stage.pki.pod_roots)
    client.load_cert_chain(stage.pki.router)
    await wire.start_tls(client, "actor")
    peer = wire.writer.get_extra_info("ssl_object").getpeercert()
    assert ("URI", WORKER_ID) in peer["subjectAltName"]
    await wire.send(b"secret\n")
    assert await wire.reader.readline() == b"SECRET\n"


async def test_each_direction_ends_by_itself(stage: Stage) -> None:
    tcp = TcpActor(shout)
    actor = await tcp.start(stage)
    wire = await opened(stage, actor, plain=True)
    await wire.send(b"last\n")
    wire.writer.write_eof()
    assert await wire.reader.read() == b"LAST\nbye\n"
    assert await within(tcp.endings.get(), LIMIT) == "end"


async def test_http2_streams_carry_it_too(stage: Stage) -> None:
    actor = await TcpActor(greet).start(stage)
    async with await RawH2.open(stage.router.connect) as outer:
        fields = [(":method", "CONNECT"), (":authority", f"x:{PORT}"), actor.header]
        first, second = [await outer.start(fields, end=False) for _ in range(2)]
        for stream in (first, second):
            await outer.wait(lambda stream=stream: bytes(stream.data) == b"220 ready\r\n")  # type: ignore[misc]
        await outer.send(first, b"one\n", end=True)
        assert (await outer.response(first)).data.endswith(b"ONE\nbye\n")
        await outer.send(second, b"two\n")
        await outer.wait(lambda: second.data.endswith(b"TWO\n"))


async def test_much_of_it_is_whole_both_ways(stage: Stage) -> None:
    async def back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    actor = await TcpActor(back).start(stage)
    wire = await opened(stage, actor, plain=True)
    sent = bytes(range(1, 256)) * (16 * MIB // 255)

    async def send() -> None:
        await wire.send(sent)
        wire.writer.write_eof()

    sending = asyncio.create_task(send())
    assert await wire.reader.read() == sent
    await sending


async def test_it_ends_with_a_reset_when_the_actor_is_suspended(stage: Stage) -> None:
    tcp = TcpActor(greet)
    actor = await tcp.start(stage)
    assert actor.activation is not None
    wire = await opened(stage, actor, plain=True)
    assert await wire.reader.readline() == b"220 ready\r\n"
    async with await RawH2.open(stage.router.connect) as outer:
        fields = [(":method", "CONNECT"), (":authority", f"x:{PORT}"), actor.header]
        stream = await outer.start(fields, end=False)
        await outer.wait(lambda: b"220" in stream.data)
        await stage.worker.deactivate(actor.activation)
        with pytest.raises(ConnectionResetError):
            await within(wire.reader.read(), LIMIT)
        with pytest.raises(StreamResetError):
            await outer.response(stream)
    assert {await within(tcp.endings.get(), LIMIT) for _ in range(2)} == {"reset"}


async def test_a_tunnel_stays_with_the_activation_of_its_beginning(stage: Stage) -> None:
    old, new = TcpActor(greet), TcpActor(greet)
    actor = await old.start(stage)
    wire = await opened(stage, actor)
    assert await wire.reader.readline() == b"220 ready\r\n"
    listener = bound_socket(PORT)
    server = await asyncio.start_server(new._accept, sock=listener)
    stage.closing(server.close)
    other = await stage.other_worker()
    stage.actor_at(listener.getsockname()[0], worker=other, ref=actor.ref)
    await wire.send(b"still here\n")
    assert await wire.reader.readline() == b"STILL HERE\n"
    assert (old.connections, new.connections) == (1, 0)


async def test_a_port_where_nothing_listens_ends_the_tunnel_with_a_reset(stage: Stage) -> None:
    actor, _ = await stage.actor(lambda _exchange: asyncio.sleep(0))
    wire = await opened(stage, actor, plain=True)
    await wire.send(b"\x00\x01 not HTTP\n")
    with pytest.raises(ConnectionResetError):
        await within(wire.reader.read(), LIMIT)


async def test_its_line_in_the_log_has_the_bytes_of_both_ways(stage: Stage) -> None:
    # B161
    actor = await TcpActor(shout).start(stage)
    wire = await opened(stage, actor, plain=True)
    await wire.send(b"word\n")
    wire.writer.write_eof()
    assert await wire.reader.read() == b"WORD\nbye\n"

    def line() -> list[dict[str, object]]:
        name = actor.ref.split("/")[1]
        return [
            record for record in stage.router.process.log_records() if record.get("actor") == name
        ]

    await eventually(lambda: bool(line()))
    (record,) = line()
    assert (record["method"], record["outcome"]) == ("CONNECT", "ok")
    assert (record["bytes_in"], record["bytes_out"]) == (5, 9)
