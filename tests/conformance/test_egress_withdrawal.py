"""A rule that goes, or an actor, ends the tunnels that it carried."""

import asyncio
import ssl

import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.egress_stage import EgressStage, http, https, passthrough
from tests.support.eventually import eventually
from tests.support.origins import Exchange, answering
from tests.support.raw_http1 import RawHttp1, request

# Well above the gateways' re-check interval.
SOON = 10.0


async def ended(wire: RawHttp1) -> bool:
    async with asyncio.timeout(SOON):
        try:
            while await wire.reader.read(65536):
                pass
        except (ConnectionResetError, ssl.SSLError):
            return True
    return True


async def hanging(exchange: Exchange) -> None:
    """Begins an answer and never ends it."""
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun")
    await exchange.reader.read()
    exchange.keep_alive = False


# B083
@pytest.mark.conformance("E-24")
@pytest.mark.parametrize(
    "how", ["rule removed", "actor deleted", "actor made again", "actor crashed", "actor suspended"]
)
async def test_a_passed_through_tunnel_ends_with_its_rule_or_actor(
    egress: EgressStage, how: str
) -> None:
    name, origin = await egress.secure_web(answering(200))
    rule = passthrough(name, ports=[origin.port])
    actor, untouched = egress.actor(rule), egress.actor(rule)
    wires = [
        await egress.tls(each, name, origin.port, egress.pki.pinned_client())
        for each in (actor, untouched)
    ]
    if how == "rule removed":
        egress.api.allow(actor)
    elif how == "actor deleted":
        del egress.api.actors[actor]
    elif how == "actor made again":
        egress.api.put(actor)
    else:
        state = f"ACTOR_STATE_{how.removeprefix('actor ').upper()}"
        egress.api.actors[actor].status.state = pb.ActorState.Value(state)
    assert await ended(wires[0])
    assert egress.denials(actor)[-1]["reason"] == "withdrawn"
    assert (await wires[1].ask(request("GET", "/", ("host", name)))).status == 200


@pytest.mark.conformance("E-24")
@pytest.mark.parametrize("state", ["PAUSING", "PAUSED", "SUSPENDING"])
async def test_a_pause_and_what_passes_end_no_tunnel(egress: EgressStage, state: str) -> None:
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(passthrough(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    egress.api.actors[actor].status.state = pb.ActorState.Value(f"ACTOR_STATE_{state}")
    seen = egress.api.asked["GetActor", actor]
    await eventually(lambda: egress.api.asked["GetActor", actor] >= seen + 2, SOON)
    assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200


# B097
@pytest.mark.conformance("E-12", "E-24")
async def test_a_name_that_ends_cuts_no_connection_that_it_led_to(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(passthrough(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    ask = request("GET", "/", ("host", name))
    assert (await wire.ask(ask)).status == 200
    del egress.names.names[name]
    seen = egress.api.asked["GetActorEgressPolicy", actor]
    await eventually(lambda: egress.api.asked["GetActorEgressPolicy", actor] >= seen + 2, SOON)
    assert (await wire.ask(ask)).status == 200
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    assert egress.denials(actor)[-1]["reason"] == "origin-unresolved"


@pytest.mark.conformance("E-24")
async def test_a_request_in_the_air_ends_with_its_rule(egress: EgressStage) -> None:
    name, origin = await egress.web(hanging)
    actor = egress.actor(http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port)
    await wire.send(request("GET", "/", ("host", name)))
    assert (await wire.head()).status == 200
    egress.api.allow(actor, http("other.example"))
    assert await ended(wire)
    await origin.wait_no_connections()


@pytest.mark.conformance("E-24")
async def test_an_intercepted_connection_ends_with_its_rule(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(https(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port)
    egress.api.allow(actor, passthrough(name, ports=[origin.port]))
    assert await ended(wire)


# B132
@pytest.mark.egress_gateway(recheck=60.0)
@pytest.mark.conformance("E-24", "E-05")
@pytest.mark.parametrize("when", ["before its first request", "after one"])
async def test_an_actors_policy_is_never_lent_to_an_earlier_one_of_its_name(
    egress: EgressStage, when: str
) -> None:
    name, origin = await egress.web(answering(200))
    rule = http(name, ports=[origin.port])
    actor = egress.actor(rule)
    wire = await egress.tunnel(actor, origin.port)
    ask = request("GET", "/", ("host", name))
    if when == "after one":
        assert (await wire.ask(ask)).status == 200
    served = len(origin.exchanges)
    egress.api.put(actor)
    del egress.api.policies[actor]
    egress.api.allow(actor, rule)
    refused = await wire.ask(ask)
    assert (refused.status, refused.head.get("ate-reason")) == (403, "actor-replaced")
    assert len(origin.exchanges) == served


@pytest.mark.conformance("E-24")
async def test_a_policy_that_is_made_again_for_the_same_actor_holds(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    rule = http(name, ports=[origin.port])
    actor = egress.actor(rule)
    wire = await egress.tunnel(actor, origin.port)
    for _ in range(2):
        assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200
        del egress.api.policies[actor]
        egress.api.allow(actor, rule)


@pytest.mark.conformance("E-24")
async def test_another_rule_that_goes_ends_nothing(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(answering(200))
    rule = passthrough(name, ports=[origin.port])
    actor = egress.actor(rule, http("other.example"))
    wire = await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    egress.api.allow(actor, rule)
    seen = egress.api.asked["GetActorEgressPolicy", actor]
    await eventually(lambda: egress.api.asked["GetActorEgressPolicy", actor] >= seen + 2, SOON)
    assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200
