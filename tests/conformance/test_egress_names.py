"""The name matrix: one table of spellings, read alike wherever a host may be written.

Each reader below is one place; it says what the gateway took the spelling for, in the words of its log, or that it
took it for no host at all.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from atenet._engine import EgressPolicy, normal_host

from tests.support.client_hello import with_server_name
from tests.support.egress_policies import http as http_rule
from tests.support.egress_policies import policy
from tests.support.egress_stage import EgressStage, http, https
from tests.support.origins import Origin, echo
from tests.support.raw_h2 import RawH2, StreamResetError
from tests.support.raw_http1 import RawHttp1, request

ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("names.json").read_text())
UNRECOGNIZED_NAME = 112


class CannotBeSaidError(Exception):
    """No message of this kind can hold the spelling."""


def is_address(means: str) -> bool:
    return means[0] == "[" or means[-1].isdigit()


def in_a_line(written: str) -> str:
    if not written or not all(0x20 < ord(c) < 0x7F for c in written):
        raise CannotBeSaidError
    return written


def last_host(egress: EgressStage, actor: str) -> str:
    return str(egress.denials(actor)[-1]["host"])


async def judged(egress: EgressStage, actor: str, wire: RawHttp1, message: bytes) -> str | None:
    answer = await wire.ask(message)
    if answer.status == 400:
        return None
    assert (answer.status, answer.head.get("ate-reason")) == (403, "no-egress-rule")
    return last_host(egress, actor)


async def in_host(egress: EgressStage, written: str) -> str | None:
    actor = egress.actor(https("*"))
    message = request("GET", "/", ("host", in_a_line(written)))
    return await judged(egress, actor, await egress.tunnel(actor, 80), message)


async def in_an_absolute_target(egress: EgressStage, written: str) -> str | None:
    actor = egress.actor(https("*"))
    if any(c in in_a_line(written) for c in "/#"):
        raise CannotBeSaidError  # there the authority ends
    message = request("GET", f"http://{written}/", ("host", written))
    return await judged(egress, actor, await egress.tunnel(actor, 80), message)


async def in_an_authority(egress: EgressStage, written: str) -> str | None:
    if not written.isascii():
        raise CannotBeSaidError
    actor = egress.actor(https("*"))
    fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", written)]
    async with await RawH2.over(await egress.tunnel(actor, 80)) as connection:
        try:
            answer = await connection.ask(fields)
        except StreamResetError:
            return None  # malformed already to the library
        if answer.status == 400:
            return None
        assert (answer.status, answer.get("ate-reason")) == (403, "no-egress-rule")
    return last_host(egress, actor)


async def in_a_connect(egress: EgressStage, written: str) -> str | None:
    """A tunnel is for an address: names are refused there as what is no host."""
    actor = egress.actor(http("*"))
    wire, answer = await egress.connect(actor, 80, address=in_a_line(written))
    if answer.status != 200:
        assert answer.status == 400
        return None
    assert (await wire.ask(request("GET", "/", ("host", "a_b")))).status == 400
    dialled = str(egress.denials(actor)[-1]["dialled"])
    return dialled.removesuffix(":80")


async def in_a_server_name(egress: EgressStage, written: str) -> str | None:
    """TLS names hosts, never addresses (RFC 6066): those are refused there as what is no name."""
    if not 0 < len(written.encode()) <= 250:
        raise CannotBeSaidError
    actor = egress.actor(http("*"))
    wire = await egress.tunnel(actor, 443)
    await wire.send(with_server_name(written.encode()))
    if (await wire.rest())[-1] == UNRECOGNIZED_NAME:
        return None
    return last_host(egress, actor)


async def in_the_matcher(_: EgressStage, written: str) -> str | None:
    compiled = EgressPolicy.compile(policy(http_rule("*")).SerializeToString())
    return compiled.decide("http", written, 80).host


async def in_the_normaliser(_: EgressStage, written: str) -> str | None:
    try:
        return normal_host(written)
    except ValueError:
        return None


Reader = Callable[[EgressStage, str], Awaitable[str | None]]
# Reader -> what it can mean beside nothing.
READERS: dict[Reader, Callable[[str], bool]] = {
    in_host: lambda _: True,
    in_an_absolute_target: lambda _: True,
    in_an_authority: lambda _: True,
    in_a_connect: is_address,
    in_a_server_name: lambda means: not is_address(means),
    in_the_matcher: lambda _: True,
    in_the_normaliser: lambda _: True,
}


# B088, B101, B102
@pytest.mark.conformance("E-09", "E-10", "E-11")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
async def test_every_place_reads_every_spelling_alike(egress: EgressStage, reader: Reader) -> None:
    before, said = set(egress.names.asked), 0
    for row in ROWS:
        written, means = row["written"], row["means"]
        if means is not None and not READERS[reader](means):
            means = None
        try:
            assert await reader(egress, written) == means, (written, reader.__name__)
            said += 1
        except CannotBeSaidError:
            continue
    assert said > len(ROWS) // 2
    # Nothing odd is ever resolved, nor anything that no rule covers.
    assert set(egress.names.asked) == before


async def named(egress: EgressStage, means: str) -> Origin:
    """An origin that this one name leads to."""
    origin = await egress.origin(echo)
    egress.names.names[means] = [[origin.address]]
    return origin


# B087, B104: rule, injector, dial and the origin's Host are of one mind, whatever the spelling.
@pytest.mark.conformance("E-09", "E-11", "E-14")
async def test_rule_credential_and_dial_agree_on_every_spelling(egress: EgressStage) -> None:
    uri = "ate-secret://secrets.example/main/of-the-matrix"
    egress.provider.secrets[uri] = b"s3cret"
    for row in ROWS:
        written, means = row["written"], row["means"]
        if means is None or is_address(means):
            continue
        origin = await named(egress, means)
        entry = {"header": "x-key", "credentialUri": uri}
        actor = egress.actor(http(means, ports=[origin.port], replaceHeaders=[entry]))
        answer = await egress.get(actor, origin.port, written, ("x-key", "placeholder"))
        told = json.loads(answer.data)
        assert told["origin"] == origin.address, row
        assert ["host", f"{means}:{origin.port}"] in told["fields"], row
        assert [value for key, value in told["fields"] if key == "x-key"] == ["s3cret"], row
