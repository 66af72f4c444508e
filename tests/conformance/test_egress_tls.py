"""TLS and everything that is no HTTP: told apart by the first bytes, decided at the ClientHello."""

import asyncio
import ssl
from random import Random

import pytest

from tests.support.client_hello import client_hello as hello
from tests.support.client_hello import with_extension
from tests.support.egress_stage import EgressStage, http, https, passthrough
from tests.support.eventually import eventually
from tests.support.origins import answering, echo
from tests.support.raw_http1 import RawHttp1, request

# Fatal alerts of a TLS record: description by name (RFC 8446, section 6).
HANDSHAKE_RECORD, ENCRYPTED_CLIENT_HELLO = 22, 0xFE0D
ACCESS_DENIED, UNRECOGNIZED_NAME, DECODE_ERROR, INTERNAL_ERROR = 49, 112, 50, 80


def records(message: bytes, size: int) -> bytes:
    """The same handshake message cut into records of so many bytes."""
    body = message[5:]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


async def alert(wire: RawHttp1) -> int:
    """The description of the alert that is all the gateway says."""
    said = await wire.rest()
    assert said[:6] == b"\x15\x03\x03\x00\x02\x02", said
    assert len(said) == 7
    return said[6]


async def is_reset(wire: RawHttp1) -> bool:
    async with asyncio.timeout(10):
        try:
            await wire.reader.read()
        except (ConnectionResetError, ssl.SSLError):
            return True
    return False


async def is_ended(wire: RawHttp1) -> bool:
    """Whether nothing comes but the end, a reset or not."""
    async with asyncio.timeout(10):
        try:
            while await wire.reader.read(65536):
                pass
        except (ConnectionResetError, ssl.SSLError):
            return True
    return True


# B121
@pytest.mark.conformance("E-08")
async def test_a_passthrough_rule_shows_the_actor_the_origins_own_certificate(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(answering(200, b"own"))
    actor = egress.actor(passthrough(name, ports=[origin.port]), https("*", ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    assert (await wire.ask(request("GET", "/", ("host", name)))).data == b"own"


@pytest.mark.conformance("E-08", "E-22")
async def test_a_server_name_without_a_rule_is_refused_by_alert(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https("other.example"), http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port)
    await wire.send(hello(name))
    assert await alert(wire) == ACCESS_DENIED
    (line,) = egress.denials(actor)
    assert (line["host"], line["reason"]) == (name, "no-egress-rule")
    assert origin.connections == 0


# B110
@pytest.mark.conformance("E-08")
@pytest.mark.parametrize("name", [None, "under_score.example"])
async def test_a_hello_without_a_usable_name_is_closed(
    egress: EgressStage, name: str | None
) -> None:
    actor = egress.actor(https("*"), passthrough("*", ports=[8443]))
    wire = await egress.tunnel(actor, 443)
    await wire.send(hello(name))
    assert await alert(wire) == UNRECOGNIZED_NAME


# B108, B109
@pytest.mark.conformance("E-07")
@pytest.mark.parametrize("cut", ["segments", "records", "bytes in records"])
async def test_a_hello_in_pieces_is_judged_as_a_whole(egress: EgressStage, cut: str) -> None:
    name, origin = await egress.web(echo)
    allowed = egress.actor(passthrough(name, ports=[origin.port]))
    denied = egress.actor(passthrough("other.example", ports=[origin.port]))
    whole = hello(name)
    pieces = {
        "segments": [whole[:100], whole[100:101], whole[101:]],
        "records": [records(whole, 200)],
        "bytes in records": [records(whole, 1)],
    }[cut]
    for actor in (denied, allowed):
        wire = await egress.tunnel(actor, origin.port)
        for piece in pieces:
            await wire.send(piece)
        if actor == denied:
            assert await alert(wire) == ACCESS_DENIED
            assert origin.connections == 0
    await eventually(lambda: origin.connections == 1)


@pytest.mark.egress_gateway(sniff=0.3)
@pytest.mark.conformance("E-07")
@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\x05\x02aaaa",
        b"\x16\x02\x01\x00\x05\x01",
        b"\x16\x03\x01\x00\x00",
        hello("a.example")[:-1],
    ],
    ids=["server hello", "version", "empty record", "never ends"],
)
async def test_a_hello_that_cannot_be_read_is_closed_and_never_passed(
    egress: EgressStage, sent: bytes
) -> None:
    origin = await egress.origin(echo)
    actor = egress.actor(passthrough("*", ports="all"), https("*"))
    wire = await egress.tunnel(actor, origin.port)
    await wire.send(sent)
    assert await alert(wire) == DECODE_ERROR
    assert origin.connections == 0


NEITHER = pytest.mark.parametrize(
    "sent",
    [b"SSH-2.0-OpenSSH_9\r\n", b"\x00\x00\x00\x08\x04\xd2", b"\x80\x2e"],
    ids=["ssh", "zeros", "old tls"],
)


@pytest.mark.conformance("E-07", "E-22")
@NEITHER
async def test_anything_else_is_reset(egress: EgressStage, sent: bytes) -> None:
    wire = await egress.tunnel(egress.actor(http("*", ports="all")), 4444)
    await wire.send(sent)
    assert await is_reset(wire)


@pytest.mark.conformance("E-07", "E-22")
@NEITHER
async def test_anything_else_is_ended_and_noted(egress: EgressStage, sent: bytes) -> None:
    origin = await egress.origin(echo)
    actor = egress.actor(http("*", ports="all"), passthrough("*", ports="all"))
    wire = await egress.tunnel(actor, origin.port)
    await wire.send(sent)
    assert await is_ended(wire)
    assert [line["reason"] for line in egress.denials(actor)] == ["unknown-protocol"]
    assert origin.connections == 0


SILENT = pytest.mark.parametrize("sent", [b"", b"GE"], ids=["nothing", "half a word"])


# B078
@pytest.mark.egress_gateway(sniff=0.3)
@pytest.mark.conformance("E-07")
@SILENT
async def test_a_client_that_waits_for_the_server_is_reset_after_the_sniff_limit(
    egress: EgressStage, sent: bytes
) -> None:
    wire = await egress.tunnel(egress.actor(http("*", ports="all")), 25)
    await wire.send(sent)
    assert await is_reset(wire)


# B078
@pytest.mark.egress_gateway(sniff=0.3)
@pytest.mark.conformance("E-07")
@SILENT
async def test_a_client_that_waits_for_the_server_is_ended_after_the_sniff_limit(
    egress: EgressStage, sent: bytes
) -> None:
    actor = egress.actor(http("*", ports="all"))
    wire = await egress.tunnel(actor, 25)
    await wire.send(sent)
    assert await is_ended(wire)
    assert [line["reason"] for line in egress.denials(actor)] == ["silent"]


@pytest.mark.conformance("E-08", "E-22")
async def test_an_origin_that_is_down_is_another_alert_than_a_denial(egress: EgressStage) -> None:
    _, wire = await towards_nobody(egress)
    assert await alert(wire) == INTERNAL_ERROR


@pytest.mark.conformance("E-08", "E-22")
async def test_an_origin_that_is_down_is_noted_as_such(egress: EgressStage) -> None:
    actor, wire = await towards_nobody(egress)
    assert await is_ended(wire)
    await eventually(lambda: len(egress.denials(actor)) > 0)
    (line,) = egress.denials(actor)
    assert line["reason"] == "origin-unreachable"


async def towards_nobody(egress: EgressStage) -> tuple[str, RawHttp1]:
    """An actor, and its ClientHello for a name that passes through to where nobody listens."""
    origin = await egress.origin(echo)
    name = egress.name(origin.address)
    actor = egress.actor(passthrough(name, ports=[origin.port]))
    await origin.close()
    wire = await egress.tunnel(actor, origin.port)
    await wire.send(hello(name))
    return actor, wire


@pytest.mark.conformance("E-08")
@pytest.mark.egress_gateway(intercepting=False)
async def test_without_an_interception_authority_https_rules_pass_nothing(
    egress: EgressStage,
) -> None:
    actor = egress.actor(https("a.example"))
    wire = await egress.tunnel(actor, 443)
    await wire.send(hello("a.example"))
    assert await alert(wire) == INTERNAL_ERROR
    assert egress.denials(actor)[0]["reason"] == "interception-off"


# Bounded: what no client would send.
@pytest.mark.conformance("E-07")
async def test_damaged_requests_and_hellos_harm_nobody_else(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]), passthrough("*", ports=[origin.port]))
    chunked = [("host", name), ("transfer-encoding", "chunked")]
    whole = request("POST", "/", *chunked) + b"5\r\nhello\r\n0\r\nx: y\r\n\r\n"
    random = Random(7)
    for good in [whole, hello(name)] * 20:
        damaged = bytearray(good)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        wire = await egress.tunnel(actor, origin.port)
        await wire.send(bytes(damaged))
        wire.abort()
    fine = await egress.get(actor, origin.port, name)
    assert fine.status == 200
    assert "panicked" not in egress.gateway.process.log


# B112
@pytest.mark.conformance("E-07", "E-08")
async def test_a_hello_that_hides_a_name_is_judged_by_the_one_that_it_shows(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(https(name, ports=[origin.port]))
    # An outer hello: cipher suite, configuration, key and payload of no meaning (GREASE), as browsers send it.
    hidden = (
        b"\x00" + b"\x00\x01\x00\x01" + b"\x07" + b"\x00\x20" + bytes(32) + b"\x00\x90" + bytes(144)
    )
    for shown in (name, "denied.example"):
        wire = await egress.tunnel(actor, origin.port)
        await wire.send(with_extension(hello(shown), ENCRYPTED_CLIENT_HELLO, hidden))
        if shown == name:
            assert (await wire.reader.readexactly(1))[0] == HANDSHAKE_RECORD
        else:
            assert await alert(wire) == ACCESS_DENIED
    assert origin.connections == 0
