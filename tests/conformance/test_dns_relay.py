"""An actor's DNS relay: names that its policy allows, and no others. The test asks from the actor's own namespace."""

import asyncio
import secrets
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support import dns_message as dns
from tests.support.captured_actor import RELAY, CapturedActor, captured_worker
from tests.support.eventually import eventually
from tests.support.resolver import Resolver, txt

ALLOWED = {"http": {"hostnames": ["a.example", "*.many.example"]}}
LIMIT = 10


@pytest.fixture
def actor() -> Iterator[CapturedActor]:
    """Its names have addresses of the relay's own, as is the default."""
    with captured_worker(None) as worker:
        made = worker.actor()
        made.open(None)
        made.allow(ALLOWED)
        yield made


@pytest.fixture
async def resolver() -> AsyncIterator[Resolver]:
    made = await Resolver.start()
    yield made
    made.close()


@pytest.fixture
async def forwarding(resolver: Resolver) -> AsyncIterator[CapturedActor]:
    """Its allowed names are asked of the node's resolver."""
    settings = {"answers": "upstream", "upstream": [resolver.address]}
    with captured_worker(None, dns=settings) as worker:
        made = worker.actor()
        made.open(None)
        made.allow(ALLOWED)
        yield made


class Stub:
    """A stub resolver on one port of the actor's: answers by their ids."""

    def __init__(self, actor: CapturedActor, server: tuple[str, int] = RELAY) -> None:
        self.sock = actor.datagrams()
        # Beyond the system's limit: hundreds of answers may come before the first is read.
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 20)  # SO_RCVBUFFORCE
        self.sock.connect(server)

    async def ask(self, message: bytes) -> dns.Answer:
        await self.send(message)
        return await self.next()

    async def send(self, message: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, message)

    async def next(self) -> dns.Answer:
        async with asyncio.timeout(LIMIT):
            message = await asyncio.get_running_loop().sock_recv(self.sock, 65535)
            self.length = len(message)
            return dns.answer(message)

    def __enter__(self) -> "Stub":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()


async def by_tcp(actor: CapturedActor, *messages: bytes) -> list[dns.Answer]:
    """All in one stream, sent before the first answer is read."""
    wire = await actor.dial(*RELAY)
    await wire.send(b"".join(struct.pack("!H", len(m)) + m for m in messages))
    answers = []
    async with asyncio.timeout(LIMIT):
        for _ in messages:
            length = struct.unpack("!H", await wire.reader.readexactly(2))[0]
            answers.append(dns.answer(await wire.reader.readexactly(length)))
    await wire.close()
    return answers


@pytest.mark.conformance("E-23")
async def test_a_name_that_is_allowed_has_an_address_of_its_own(actor: CapturedActor) -> None:
    with Stub(actor) as stub:
        first = await stub.ask(dns.question("A.eXample", ident=0xBEEF))
        assert (first.ident, first.code, first.name) == (0xBEEF, dns.NOERROR, "A.eXample")
        [address] = first.addresses
        assert address.startswith("198.18.")
        assert (await stub.ask(dns.question("a.example."))).addresses == [address]
        [other] = (await stub.ask(dns.question("x.many.example"))).addresses
        assert other != address
    [over_tcp] = await by_tcp(actor, dns.question("a.example", ident=7))
    assert (over_tcp.ident, over_tcp.addresses) == (7, [address])


@pytest.mark.conformance("E-23")
async def test_a_name_that_is_not_allowed_does_not_exist_and_says_why(actor: CapturedActor) -> None:
    with Stub(actor) as stub:
        for name in ("b.example", "x.y.many.example", "many.example", "a.example.net", "localhost"):
            for kind in (dns.A, dns.AAAA, dns.TXT, dns.HTTPS):
                found = await stub.ask(dns.question(name, kind))
                assert (found.code, found.records, found.edns) == (dns.NXDOMAIN, (), False)
        told = await stub.ask(dns.question("b.example", edns=1232))
        assert (told.code, told.error) == (dns.NXDOMAIN, 18)  # prohibited
    [over_tcp] = await by_tcp(actor, dns.question("b.example"))
    assert over_tcp.code == dns.NXDOMAIN
    assert actor.numbers()["dns"] == {"denied": 22}


@pytest.mark.conformance("E-23")
async def test_of_a_name_that_is_allowed_all_but_its_address_is_empty(actor: CapturedActor) -> None:
    with Stub(actor) as stub:
        for kind in (dns.AAAA, dns.TXT, dns.HTTPS, 15, 33):
            found = await stub.ask(dns.question("a.example", kind, edns=1232))
            assert (found.code, found.records, found.edns) == (dns.NOERROR, (), True), kind


# B143
@pytest.mark.conformance("E-23")
@pytest.mark.parametrize("mode", ["synthetic", "upstream"])
async def test_300_questions_at_once_have_300_right_answers(
    actor: CapturedActor, forwarding: CapturedActor, resolver: Resolver, mode: str
) -> None:
    asked = {n: f"host-{n}.many.example" for n in range(300)}
    for n, name in asked.items():
        resolver.put(name, f"203.0.{n // 256}.{n % 256}")
    with Stub(actor if mode == "synthetic" else forwarding) as stub:
        for n, name in asked.items():
            await stub.send(dns.question(name, ident=n))
        found = {a.ident: a for a in [await stub.next() for _ in asked]}
    assert {n: a.name for n, a in found.items()} == asked
    addresses = {n: a.addresses for n, a in found.items()}
    if mode == "upstream":
        assert addresses == {n: [f"203.0.{n // 256}.{n % 256}"] for n in asked}
    assert len({tuple(a) for a in addresses.values()}) == 300


# B143
@pytest.mark.conformance("E-23")
@pytest.mark.parametrize("mode", ["synthetic", "upstream"])
async def test_two_questions_with_one_id_and_port_are_both_answered(
    actor: CapturedActor, forwarding: CapturedActor, resolver: Resolver, mode: str
) -> None:
    names = ["one.many.example", "two.many.example"]
    for n, name in enumerate(names):
        resolver.put(name, f"203.0.113.{n}")
    with Stub(actor if mode == "synthetic" else forwarding) as stub:
        for name in names:
            await stub.send(dns.question(name, ident=9))
        found = [await stub.next(), await stub.next()]
    assert sorted(a.name for a in found) == names
    assert {a.ident for a in found} == {9}
    assert all(a.addresses for a in found)


# B148
@pytest.mark.conformance("E-23")
async def test_no_denied_name_reaches_a_resolver_and_each_is_told_in_bounds(
    forwarding: CapturedActor, resolver: Resolver
) -> None:
    with Stub(forwarding) as stub:
        for _ in range(50):
            name = f"{secrets.token_hex(30)}.{secrets.token_hex(30)}.evil.example"
            assert (await stub.ask(dns.question(name))).code == dns.NXDOMAIN
        for name in (f"{secrets.token_hex(30)}.a.example", "x.y.many.example"):
            assert (await stub.ask(dns.question(name, dns.TXT))).code == dns.NXDOMAIN
    assert resolver.asked == {}
    assert forwarding.numbers()["dns"] == {"denied": 52}


@pytest.mark.conformance("E-23")
async def test_by_default_no_question_leaves_at_all(resolver: Resolver) -> None:
    with captured_worker(None, dns={"upstream": [resolver.address]}) as worker:
        made = worker.actor()
        made.open(None)
        made.allow({"http": {"hostnames": ["*"]}})
        with Stub(made) as stub:
            assert (await stub.ask(dns.question("whatever.example"))).addresses
    assert resolver.asked == {}


@pytest.mark.conformance("E-23")
async def test_upstream_answers_are_passed_on_but_what_the_gateway_cannot_use(
    forwarding: CapturedActor, resolver: Resolver
) -> None:
    resolver.put("a.example", "203.0.113.7")
    resolver.records["a.example", dns.AAAA] = [b"\0" * 16]
    resolver.records["a.example", dns.HTTPS] = [b"\0\1\0"]
    resolver.records["a.example", dns.TXT] = [b"\x02hi"]
    with Stub(forwarding) as stub:
        assert (await stub.ask(dns.question("A.example"))).addresses == ["203.0.113.7"]
        assert (await stub.ask(dns.question("a.example", dns.TXT))).records == (
            (dns.TXT, b"\x02hi"),
        )
        for kind in (dns.AAAA, dns.HTTPS):
            found = await stub.ask(dns.question("a.example", kind))
            assert (found.code, found.records) == (dns.NOERROR, ())
        assert (await stub.ask(dns.question("no.many.example"))).code == dns.NXDOMAIN
    assert resolver.asked["a.example"] + resolver.asked["A.example"] == 2


# B145
@pytest.mark.conformance("E-23")
async def test_a_long_answer_is_marked_by_udp_and_whole_by_tcp(
    forwarding: CapturedActor, resolver: Resolver
) -> None:
    resolver.records["a.example", dns.TXT] = txt(3000)
    whole = len(txt(3000))
    asked = dns.question("a.example", dns.TXT)
    with Stub(forwarding) as stub:
        for edns in (None, 512, 1232):
            found = await stub.ask(dns.question("a.example", dns.TXT, edns=edns))
            assert (found.code, found.truncated) == (dns.NOERROR, True)
            assert (found.records, found.authorities) == ((), 0)
            assert found.edns is (edns is not None)
            assert stub.length <= (edns or 512)
    # After what was cut, and twice in one stream: always the whole.
    for found in await by_tcp(forwarding, asked, asked):
        assert (found.truncated, len(found.records)) == (False, whole)


# B145
@pytest.mark.conformance("E-23")
async def test_what_a_resolver_cut_is_asked_for_again_by_tcp(
    forwarding: CapturedActor, resolver: Resolver
) -> None:
    resolver.records["a.example", dns.TXT] = txt(6000)  # more than the relay takes by UDP
    [found] = await by_tcp(forwarding, dns.question("a.example", dns.TXT))
    assert len(found.records) == len(txt(6000))
    assert resolver.streams == 1


@pytest.mark.conformance("E-23")
async def test_the_next_resolver_is_asked_when_one_cannot(resolver: Resolver) -> None:
    other = await Resolver.start()
    resolver.code = dns.SERVFAIL
    other.put("a.example", "203.0.113.8")
    settings = {"answers": "upstream", "upstream": [resolver.address, other.address]}
    with captured_worker(None, dns=settings) as worker:
        made = worker.actor()
        made.open(None)
        made.allow(ALLOWED)
        with Stub(made) as stub:
            assert (await stub.ask(dns.question("a.example"))).addresses == ["203.0.113.8"]
            other.code = dns.REFUSED
            assert (await stub.ask(dns.question("a.example"))).code == dns.REFUSED
            resolver.silent = other.silent = True
            found = await stub.ask(dns.question("a.example", edns=1232))
            assert (found.code, found.error) == (dns.SERVFAIL, 22)  # nobody to be reached
        assert made.numbers()["dns"] == {"answered": 2, "upstream-failed": 1}
    other.close()


# B147
@pytest.mark.conformance("E-23")
async def test_only_the_relay_answers_questions(
    forwarding: CapturedActor, resolver: Resolver
) -> None:
    """Neither resolvers elsewhere nor the node's own: not by UDP; TCP is the gateway's to judge."""
    host, _, port = resolver.address.partition(":")
    resolver.put("a.example", "203.0.113.7")
    for server in (("8.8.8.8", 53), (host, int(port)), ("169.254.17.1", 5353)):
        with Stub(forwarding, server) as stub, pytest.raises(OSError):
            await stub.ask(dns.question("a.example"))
    assert resolver.asked == {}


# B147
@pytest.mark.conformance("E-23")
async def test_what_is_no_question_is_dropped_and_counted(actor: CapturedActor) -> None:
    reply = bytearray(dns.question("a.example"))
    reply[2] |= 0x80
    nonsense = [b"", b"\0" * 5, b"GET / HTTP/1.1\r\n\r\n", bytes(reply), b"\xff" * 4000]
    with Stub(actor) as stub:
        for message in nonsense:
            await stub.send(message)
        assert (await stub.ask(dns.question("a.example", ident=3))).ident == 3
        assert actor.numbers()["dns"] == {"garbage": len(nonsense), "answered": 1}
    wire = await actor.dial(*RELAY)
    await wire.send(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n")
    assert await wire.rest() == b""
    await wire.close()


@pytest.mark.conformance("E-23")
async def test_questions_that_nobody_may_ask_are_told_by_their_code(actor: CapturedActor) -> None:
    with Stub(actor) as stub:
        status = bytearray(dns.question("a.example"))
        status[2] |= 0x10  # opcode STATUS
        assert (await stub.ask(bytes(status))).code == dns.NOTIMP
        assert (await stub.ask(dns.question("a.example", 252))).code == dns.REFUSED  # AXFR


# B147
@pytest.mark.conformance("E-23")
async def test_an_actor_asks_so_much_and_its_neighbour_in_its_own_right() -> None:
    with captured_worker(None, dns={"queries_per_second": 20}) as worker:
        actor, neighbour = worker.actor("team/a"), worker.actor("team/b")
        for one in (actor, neighbour):
            one.open(None)
            one.allow(ALLOWED)
        with Stub(actor) as flooding, Stub(neighbour) as calm:
            for n in range(200):
                await flooding.send(dns.question("a.example", ident=n))
            await eventually(lambda: sum(actor.numbers()["dns"].values()) == 200)
            assert (await calm.ask(dns.question("a.example"))).addresses
        counted = actor.numbers()["dns"]
        assert 40 <= counted["answered"] <= 80
        assert counted["limited"] == 200 - counted["answered"]


@pytest.mark.conformance("E-23")
async def test_a_changed_policy_holds_for_the_next_question(actor: CapturedActor) -> None:
    with Stub(actor) as stub:
        assert (await stub.ask(dns.question("b.example"))).code == dns.NXDOMAIN
        actor.allow({"tlsPassthrough": {"hostnames": ["b.example"], "ports": {"numbers": [443]}}})
        assert (await stub.ask(dns.question("b.example"))).addresses
        assert (await stub.ask(dns.question("a.example"))).code == dns.NXDOMAIN
        actor.engine.set_policy(actor.uid, b"")
        assert (await stub.ask(dns.question("b.example"))).code == dns.NXDOMAIN


@pytest.mark.conformance("E-23")
async def test_a_policy_that_nobody_confirms_is_soon_not_known() -> None:
    with captured_worker(None, dns={"policy_max_age_ms": 1500}) as worker:
        made = worker.actor()
        made.open(None)
        with Stub(made) as stub:
            asked = dns.question("a.example", edns=1232)
            unknown = await stub.ask(asked)
            assert (unknown.code, unknown.error) == (dns.SERVFAIL, 14)  # not ready
            made.allow(ALLOWED)
            for _ in range(4):
                await asyncio.sleep(0.5)
                made.engine.confirm_policy(made.uid)
            assert (await stub.ask(asked)).addresses
            began = time.monotonic()

            async def unknown_again() -> bool:
                return (await stub.ask(asked)).code == dns.SERVFAIL

            await eventually(unknown_again)
            assert 1 < time.monotonic() - began < 5


@pytest.mark.conformance("E-23")
async def test_after_the_activation_nobody_answers(actor: CapturedActor) -> None:
    wire = await actor.dial(*RELAY)
    with Stub(actor) as stub:
        assert (await stub.ask(dns.question("a.example"))).addresses
        await actor.close()
        with pytest.raises(ConnectionRefusedError):
            await actor.dial(*RELAY)
        with pytest.raises(ConnectionRefusedError):
            await stub.ask(dns.question("a.example"))
    async with asyncio.timeout(LIMIT):
        assert await wire.reader.read() == b""
    await wire.close()


async def test_many_conversations_are_held_and_no_more(actor: CapturedActor) -> None:
    wires = [await actor.dial(*RELAY) for _ in range(70)]
    message = dns.question("a.example")
    served = 0
    for wire in wires:
        try:
            await wire.send(struct.pack("!H", len(message)) + message)
            async with asyncio.timeout(LIMIT):
                served += bool(await wire.reader.read(2))
        except (ConnectionResetError, BrokenPipeError):
            continue
    assert served == 64
    for wire in wires:
        wire.writer.transport.abort()


def test_an_actor_finds_its_relay_by_name(actor: CapturedActor) -> None:
    """The address is the one in every sandbox's resolv.conf."""
    assert RELAY == ("169.254.17.1", 53)
    assert socket.inet_aton(RELAY[0])
