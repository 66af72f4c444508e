"""What an actor dials: into a tunnel of its own, or nowhere.

Real namespaces and rules, a real engine, a gateway that does as it is told.
"""

import asyncio
import contextlib
import errno
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from atenet.worker.network import ACTOR_ADDRESS, GATEWAY_ADDRESS
from atenet.worker.network.addresses import own_addresses

from tests.support.captured_actor import (
    CAPTURE_PORT,
    RELAY,
    CapturedActor,
    CapturedWorker,
    ScriptedGateway,
    captured_worker,
)
from tests.support.egress_pki import EgressPki, tunnel_id
from tests.support.eventually import eventually
from tests.support.raw_http1 import RawHttp1

DIALLED = ("203.0.113.9", 443)


@pytest.fixture
def worker(egress_pki: EgressPki) -> Iterator[CapturedWorker]:
    limits = {"connections": 50, "connect_ms": 400, "open_ms": 1500}
    with captured_worker(egress_pki, refused=own_addresses(), limits=limits) as made:
        yield made


@pytest.fixture
async def gateway(egress_pki: EgressPki) -> AsyncIterator[ScriptedGateway]:
    made = await ScriptedGateway(egress_pki).start()
    yield made
    await made.close()


@pytest.fixture
def actor(worker: CapturedWorker, gateway: ScriptedGateway, egress_pki: EgressPki) -> CapturedActor:
    made = worker.actor()
    made.open(gateway.address)
    made.certify(egress_pki)
    return made


async def ends_in_reset(wire: RawHttp1) -> bool:
    """Whether the connection breaks, rather than ends."""
    async with asyncio.timeout(10):
        try:
            return await wire.reader.read() is None
        except ConnectionResetError:
            return True


async def is_reset(actor: CapturedActor) -> bool:
    """Whether what it dials breaks; the reset may come before the actor has looked."""
    try:
        return await ends_in_reset(await actor.dial(*DIALLED))
    except ConnectionResetError:
        return True


async def counted(actor: CapturedActor, reasons: dict[str, int]) -> None:
    """The actor may see a reset a moment before it is counted."""
    await eventually(lambda: actor.numbers()["refused"] == reasons, seconds=5)


async def refused(actor: CapturedActor, host: str, port: int) -> None:
    """At once, and before anything is connected."""
    began = time.monotonic()
    with pytest.raises(ConnectionRefusedError):
        await actor.dial(host, port)
    assert time.monotonic() - began < 2


async def opened_pair(actor: CapturedActor, gateway: ScriptedGateway) -> tuple[RawHttp1, RawHttp1]:
    """The two ends of one connection: the actor's and the gateway's."""
    here = await actor.dial(*DIALLED)
    return here, await gateway.tunnel()


@pytest.mark.conformance("E-01", "E-03")
async def test_a_connection_leaves_through_a_tunnel_of_the_actor(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    here, there = await opened_pair(actor, gateway)
    assert gateway.heads == [b"CONNECT 203.0.113.9:443 HTTP/1.1\r\nhost: 203.0.113.9:443\r\n\r\n"]
    assert gateway.uris() == [tunnel_id(actor.ref)]
    await here.send(b"to the world")
    assert await there.reader.readexactly(12) == b"to the world"
    await there.send(b"and back")
    assert await here.reader.readexactly(8) == b"and back"
    await here.close()


# B147
@pytest.mark.conformance("E-01", "E-23")
async def test_every_port_is_captured_those_of_resolvers_elsewhere_too(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    for port in (1, 22, 53, 80, 853, 15001, 65535):
        here = await actor.dial("8.8.8.8", port)
        await gateway.tunnel()
        assert gateway.heads[-1].startswith(b"CONNECT 8.8.8.8:%d HTTP/1.1\r\n" % port)
        await here.close()


# B073, B077
@pytest.mark.conformance("E-02")
@pytest.mark.parametrize(
    ("host", "port"),
    [
        (GATEWAY_ADDRESS, CAPTURE_PORT),
        (GATEWAY_ADDRESS, 80),
        (GATEWAY_ADDRESS, 8443),
        ("169.254.169.254", 80),
        ("169.254.17.3", CAPTURE_PORT),
        ("127.0.0.1", CAPTURE_PORT),
        ("127.0.0.1", 7443),
        ("0.0.0.0", CAPTURE_PORT),
        ("224.0.0.1", 80),
        ("255.255.255.254", 80),
    ],
)
async def test_what_only_means_something_here_is_one_refused_connection(
    actor: CapturedActor, gateway: ScriptedGateway, host: str, port: int
) -> None:
    # Multicast and broadcast have no route to begin with; all others are answered with a reset.
    with pytest.raises((ConnectionRefusedError, OSError)) as caught:
        await actor.dial(host, port)
    assert caught.value.errno in (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH)
    assert gateway.connections == 0
    assert (actor.numbers()["open"], actor.numbers()["opened"]) == (0, 0)


# B073, B077
@pytest.mark.conformance("E-02")
async def test_the_workers_own_addresses_are_refused_on_every_port(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    with socket.create_server(("", 0)) as listening:
        port = listening.getsockname()[1]
        assert own_addresses(), "this machine has an address"
        for address in own_addresses():
            for dialled in (port, CAPTURE_PORT, 8443):
                await refused(actor, address, dialled)
    assert gateway.connections == 0


# B076
@pytest.mark.conformance("E-01")
async def test_datagrams_reach_the_relay_and_nobody_else(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    loop = asyncio.get_running_loop()
    actor.allow({"http": {"hostnames": ["a.example"]}})
    question = (
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"
    )
    with actor.datagrams() as sock:
        sock.connect(RELAY)
        await loop.sock_sendall(sock, question)
        async with asyncio.timeout(5):
            assert (await loop.sock_recv(sock, 512))[:2] == b"\x12\x34"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
        # An origin that would answer, if anything came.
        answering.bind(("0.0.0.0", 0))
        answering.setblocking(False)
        port = answering.getsockname()[1]
        for address, target in (
            *((own, port) for own in own_addresses()),
            *(("203.0.113.9", p) for p in (53, 443, 9999)),
            ("8.8.8.8", 53),
            (GATEWAY_ADDRESS, 443),
        ):
            with actor.datagrams() as sock:
                sock.connect((address, target))
                assert await _no_answer(sock, question), (address, target)
        with pytest.raises(BlockingIOError):
            answering.recv(512)
    assert gateway.connections == 0


async def _no_answer(sock: socket.socket, datagram: bytes) -> bool:
    """Whether it is refused, or comes to nothing within a second."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(sock, datagram)
        async with asyncio.timeout(1):
            return not await loop.sock_recv(sock, 512)
    except OSError:
        return True


# B077
@pytest.mark.conformance("E-01")
async def test_a_packet_with_a_forged_source_is_nobodys(actor: CapturedActor) -> None:
    actor.allow({"http": {"hostnames": ["a.example"]}})
    question = (
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"
    )

    def forged(source: str) -> bytes:
        datagram = struct.pack("!HHHH", 5353, 53, 8 + len(question), 0) + question
        addresses = socket.inet_aton(source) + socket.inet_aton(GATEWAY_ADDRESS)
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(datagram), 1, 0, 64, 17, 0)
        return head + addresses + datagram

    raw = actor.datagrams(kind=socket.SOCK_RAW, protocol=socket.IPPROTO_RAW)
    with raw:
        for source in ("169.254.17.1", "10.9.8.7", "127.0.0.1"):
            raw.sendto(forged(source), RELAY)
        assert actor.numbers()["dns"] == {}
        raw.sendto(forged(ACTOR_ADDRESS), RELAY)  # what the others would have done
        await eventually(lambda: actor.numbers()["dns"] == {"answered": 1})


# B074, B075
@pytest.mark.conformance("E-01")
async def test_the_sixth_family_leads_nowhere_but_what_it_maps_is_captured(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    began = time.monotonic()
    for port in (443, 53):
        with pytest.raises(OSError) as caught:
            await actor.dial("2001:db8::1", port, family=socket.AF_INET6)
        assert caught.value.errno in (errno.ENETUNREACH, errno.EADDRNOTAVAIL)
    assert time.monotonic() - began < 2
    here = await actor.dial("::ffff:203.0.113.9", 443, family=socket.AF_INET6)
    await gateway.tunnel()
    assert gateway.heads[-1].startswith(b"CONNECT 203.0.113.9:443 ")
    await here.close()


# B072
@pytest.mark.conformance("E-01")
async def test_without_a_gateway_every_dial_is_refused(worker: CapturedWorker) -> None:
    actor = worker.actor()
    actor.open(None)
    for host, port in (DIALLED, ("8.8.8.8", 53), ("10.0.0.1", 80)):
        await refused(actor, host, port)


@pytest.mark.conformance("E-01")
async def test_before_an_activation_and_after_it_every_dial_is_refused(
    worker: CapturedWorker, gateway: ScriptedGateway, egress_pki: EgressPki
) -> None:
    actor = worker.actor()
    await refused(actor, *DIALLED)
    actor.open(gateway.address)
    actor.certify(egress_pki)
    here, _ = await opened_pair(actor, gateway)
    assert await actor.close()
    assert not await actor.close()
    await refused(actor, *DIALLED)
    assert await ends_in_reset(here)


async def test_a_worker_without_the_gateways_trust_opens_no_egress() -> None:
    with captured_worker(None) as worker:
        actor = worker.actor()
        with pytest.raises(Exception, match="no trust bundle"):
            actor.open("127.0.0.1:1")
        actor.open(None)


@pytest.mark.conformance("E-03")
async def test_without_a_certificate_or_with_an_expired_one_a_connection_is_reset_at_once(
    worker: CapturedWorker, gateway: ScriptedGateway, egress_pki: EgressPki
) -> None:
    actor = worker.actor()
    actor.open(gateway.address)
    assert await is_reset(actor)
    actor.certify(egress_pki, not_after=time.time() - 1)
    assert await is_reset(actor)
    actor.certify(egress_pki)
    running, there = await opened_pair(actor, gateway)

    actor.certify(egress_pki, not_after=time.time() - 1)
    assert await is_reset(actor)
    actor.engine.drop_credential(actor.uid)
    assert await is_reset(actor)
    assert gateway.connections == 1
    await counted(actor, {"no-credential": 2, "credential-expired": 2})

    await running.send(b"lives on")
    assert await there.reader.readexactly(8) == b"lives on"
    await running.close()


@pytest.mark.conformance("E-03")
async def test_a_renewed_certificate_is_shown_from_the_next_connection_on(
    actor: CapturedActor, gateway: ScriptedGateway, egress_pki: EgressPki
) -> None:
    first, _ = await opened_pair(actor, gateway)
    actor.certify(egress_pki)
    second, there = await opened_pair(actor, gateway)
    one, other = gateway.certificates
    assert one.serial_number != other.serial_number
    await second.send(b"x")
    assert await there.reader.readexactly(1) == b"x"
    await first.close()
    await second.close()


@pytest.mark.conformance("E-03")
async def test_a_certificate_and_its_key_must_fit(
    actor: CapturedActor, egress_pki: EgressPki
) -> None:
    issue = egress_pki.actors.issue
    key, other = (issue(uris=[tunnel_id(actor.ref)]) for _ in range(2))
    end = b"-----END PRIVATE KEY-----\n"
    mixed = key.partition(end)[0] + end + other.partition(end)[2]
    with pytest.raises(Exception, match="certificate and its key"):
        actor.certify(egress_pki, bundle=mixed)


@pytest.mark.conformance("E-03")
async def test_a_gateway_that_does_not_prove_its_name_gets_nothing(
    worker: CapturedWorker, egress_pki: EgressPki
) -> None:
    imposter = await ScriptedGateway(egress_pki, names=("other.ate-system.svc",)).start()
    actor = worker.actor()
    actor.open(imposter.address)
    actor.certify(egress_pki)
    assert await is_reset(actor)
    assert imposter.heads == []
    await counted(actor, {"gateway-handshake": 1})
    await imposter.close()


@pytest.mark.conformance("E-03")
async def test_a_refused_tunnel_is_a_reset_and_its_reason_is_counted(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    gateway.answer = (
        b"HTTP/1.1 403 Forbidden\r\nate-reason: actor-unknown\r\ncontent-length: 2\r\n\r\nno"
    )
    assert await is_reset(actor)
    gateway.answer = b"HTTP/1.1 nonsense\r\n\r\n"
    assert await is_reset(actor)
    await counted(actor, {"gateway-declined": 1, "gateway-no-answer": 1})


@pytest.mark.conformance("E-03")
async def test_what_the_gateway_says_with_its_answer_is_the_first_of_the_tunnel(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    gateway.answer = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx: y\r\n\r\n220 mail.example\r\n"
    )
    here = await actor.dial(*DIALLED)
    async with asyncio.timeout(10):
        assert await here.reader.readline() == b"220 mail.example\r\n"
    await here.close()


@pytest.mark.conformance("E-03")
async def test_what_the_actor_says_before_the_tunnel_is_open_is_not_lost(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    here = await actor.dial(*DIALLED)
    sent = bytes(range(256)) * 4096
    sending = asyncio.ensure_future(here.send(sent))
    there = await gateway.tunnel()
    async with asyncio.timeout(20):
        assert await there.reader.readexactly(len(sent)) == sent
        await sending
    await here.close()


@pytest.mark.conformance("E-03")
async def test_an_end_of_the_actors_is_an_end_and_the_other_direction_goes_on(
    worker: CapturedWorker, gateway: ScriptedGateway, egress_pki: EgressPki
) -> None:
    def answer_after_the_end(listening: socket.socket) -> bytes:
        # Unlike asyncio's, this TLS can speak after it has read an end.
        accepted, _ = listening.accept()
        with gateway.context.wrap_socket(accepted, server_side=True) as tls:
            while not tls.recv(4096).endswith(b"\r\n\r\n"):
                pass
            tls.sendall(gateway.answer)
            said = b""
            while piece := tls.recv(4096):
                said += piece
            tls.sendall(b"heard: " + said)
            return said

    with socket.create_server(("127.0.0.1", 0)) as listening:
        actor = worker.actor()
        actor.open("{}:{}".format(*listening.getsockname()))
        actor.certify(egress_pki)
        answering = asyncio.ensure_future(asyncio.to_thread(answer_after_the_end, listening))
        here = await actor.dial(*DIALLED)
        await here.send(b"all of it")
        here.writer.write_eof()
        async with asyncio.timeout(10):
            assert await here.reader.readexactly(16) == b"heard: all of it"
            assert await answering == b"all of it"
        await here.close()


@pytest.mark.conformance("E-03")
async def test_an_end_of_the_gateways_is_an_end(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    here, there = await opened_pair(actor, gateway)
    await there.send(b"the last word")
    there.writer.close()
    async with asyncio.timeout(10):
        assert await here.reader.read() == b"the last word"
    await here.close()


@pytest.mark.conformance("E-03")
async def test_a_reset_of_either_end_is_a_reset_of_the_other(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    here, there = await opened_pair(actor, gateway)
    there.abort()
    assert await ends_in_reset(here)
    here, there = await opened_pair(actor, gateway)
    here.abort()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionResetError):
            assert await there.reader.read() == b""
        await eventually(lambda: actor.numbers()["open"] == 0)
    with pytest.raises(OSError, match=r"reset|closed|Broken"):
        await _write_until_it_fails(there)


async def _write_until_it_fails(wire: RawHttp1) -> None:
    async with asyncio.timeout(10):
        while True:
            await wire.send(b"x" * 65536)
            await asyncio.sleep(0.01)
            if wire.writer.transport.is_closing():
                raise ConnectionResetError("closed")


# B071
@pytest.mark.conformance("E-03")
async def test_a_gateway_that_does_not_answer_costs_a_few_seconds_and_no_more(
    worker: CapturedWorker, egress_pki: EgressPki
) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = "{}:{}".format(*deaf.getsockname())
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:  # the queue is full: a SYN is not answered
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        actor = worker.actor()
        actor.open(address)
        actor.certify(egress_pki)
        began = time.monotonic()
        assert all(await asyncio.gather(*(is_reset(actor) for _ in range(10))))
        assert time.monotonic() - began < 5
        await eventually(lambda: sum(actor.numbers()["refused"].values()) == 10)
        for filler in fillers:
            filler.close()
    with socket.create_server(("127.0.0.1", 0)) as mute:  # TCP, and then nothing
        actor = worker.actor("team/other")
        actor.open("{}:{}".format(*mute.getsockname()))
        actor.certify(egress_pki)
        began = time.monotonic()
        assert await is_reset(actor)
        assert 1 < time.monotonic() - began < 5
        await counted(actor, {"gateway-timeout": 1})


@pytest.mark.conformance("E-03")
async def test_a_gateway_that_is_not_there_is_a_reset_at_once(
    worker: CapturedWorker, egress_pki: EgressPki
) -> None:
    actor = worker.actor()
    actor.open("127.0.0.1:1")
    actor.certify(egress_pki)
    assert await is_reset(actor)
    await counted(actor, {"gateway-unreachable": 1})


@pytest.mark.conformance("E-01")
async def test_an_actor_has_so_many_connections_and_its_neighbour_its_own(
    worker: CapturedWorker, actor: CapturedActor, gateway: ScriptedGateway, egress_pki: EgressPki
) -> None:
    open_now = [await opened_pair(actor, gateway) for _ in range(50)]
    assert await is_reset(actor)
    neighbour = worker.actor("team/neighbour")
    neighbour.open(gateway.address)
    neighbour.certify(egress_pki)
    here, _ = await opened_pair(neighbour, gateway)
    assert gateway.uris()[-1] == tunnel_id("team/neighbour")
    await here.close()
    await open_now[0][0].close()
    open_now[0][1].writer.close()
    await eventually(lambda: actor.numbers()["open"] == 49)
    here, _ = await opened_pair(actor, gateway)
    await counted(actor, {"too-many-connections": 1})
    await actor.close()


@pytest.mark.conformance("E-01")
async def test_the_end_of_an_activation_resets_what_runs_both_ways(
    actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    pairs = [await opened_pair(actor, gateway) for _ in range(5)]
    began = time.monotonic()
    assert await actor.close()
    assert time.monotonic() - began < 2
    for here, there in pairs:
        assert await ends_in_reset(here)
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(10):
                assert await there.reader.read() == b""


async def test_the_numbers_of_all_actors_are_there_for_prometheus(
    worker: CapturedWorker, actor: CapturedActor, gateway: ScriptedGateway
) -> None:
    here, there = await opened_pair(actor, gateway)
    await eventually(lambda: "ateworker_egress_tunnels_open 1\n" in worker.engine.metrics())
    text = worker.engine.metrics()
    assert 'ateworker_egress_connections_total{outcome="opened"} 1\n' in text
    await here.send(b"12345")
    await there.reader.readexactly(5)
    there.writer.close()
    await here.close()
    await eventually(lambda: "ateworker_egress_tunnels_open 0\n" in worker.engine.metrics())
    assert 'ateworker_egress_bytes_total{direction="sent"} 5\n' in worker.engine.metrics()
    assert actor.ref not in worker.engine.metrics()


@pytest.mark.conformance("E-02", "E-03")
async def test_no_descriptor_is_left_of_what_ended(
    worker: CapturedWorker, actor: CapturedActor, gateway: ScriptedGateway, egress_pki: EgressPki
) -> None:
    async def some() -> None:
        for _ in range(20):
            here, there = await opened_pair(actor, gateway)
            there.writer.close()
            await here.close()
        actor.engine.drop_credential(actor.uid)
        for _ in range(20):
            assert await is_reset(actor)
            with pytest.raises(ConnectionRefusedError):
                await actor.dial(GATEWAY_ADDRESS, CAPTURE_PORT)
        actor.certify(egress_pki)
        await eventually(lambda: actor.numbers()["open"] == 0)

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    await some()
    await eventually(lambda: gateway.tunnels.empty())
    before = descriptors()
    for _ in range(3):
        await some()
    await eventually(lambda: descriptors() <= before + 2)
