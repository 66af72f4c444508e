"""Envoy's gateway keeps an actor's policy for a while: that there is none as well, and no failure."""

import asyncio

import grpc
import pytest

from tests.support.egress_stage import EgressStage, http, passthrough
from tests.support.eventually import eventually
from tests.support.origins import answering
from tests.support.raw_http1 import request

pytestmark = [
    pytest.mark.conformance("E-18"),
    pytest.mark.only("envoy"),
    # Longer than any test: what is asked twice was not kept. Those that wait for the end of the time say so.
    pytest.mark.egress_gateway(policy_ttl=600.0),
]

SHORT = 2.0
LIMIT = 20.0
POLICY = "GetActorEgressPolicy"


async def status(egress: EgressStage, actor: str, port: int, name: str) -> int:
    return (await egress.get(actor, port, name)).status


async def becomes(egress: EgressStage, actor: str, port: int, name: str, wanted: int) -> None:
    async def it_is() -> bool:
        return await status(egress, actor, port, name) == wanted

    await eventually(it_is, LIMIT)


async def test_a_policy_is_used_again(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    assert await status(egress, actor, origin.port, name) == 200
    egress.api.allow(actor, http("other.example"))
    assert await status(egress, actor, origin.port, name) == 200
    assert egress.api.asked[POLICY, actor] == 1


async def test_that_there_is_no_policy_is_kept_as_well(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor()
    assert await status(egress, actor, origin.port, name) == 403
    egress.api.allow(actor, http(name, ports=[origin.port]))
    assert await status(egress, actor, origin.port, name) == 403
    assert egress.api.asked[POLICY, actor] == 1


# B080
@pytest.mark.egress_gateway(policy_ttl=SHORT)
async def test_a_change_is_seen_within_the_time(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor()
    assert await status(egress, actor, origin.port, name) == 403
    egress.api.allow(actor, http(name, ports=[origin.port]))
    await becomes(egress, actor, origin.port, name, 200)
    egress.api.allow(actor, http("other.example"))
    await becomes(egress, actor, origin.port, name, 403)


# B080
async def test_a_failure_is_not_kept(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    egress.api.failing[POLICY, actor] = grpc.StatusCode.UNAVAILABLE
    assert await status(egress, actor, origin.port, name) == 503
    del egress.api.failing[POLICY, actor]
    assert await status(egress, actor, origin.port, name) == 200


async def test_an_actor_made_again_does_not_inherit_what_is_kept(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    assert await status(egress, actor, origin.port, name) == 200
    egress.api.put(actor)
    del egress.api.policies[actor]
    assert await status(egress, actor, origin.port, name) == 403


@pytest.mark.conformance("E-24")
async def test_a_live_tunnel_is_held_to_the_policy_as_it_is_now(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(passthrough(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    egress.api.allow(actor)
    await eventually(lambda: bool(egress.denials(actor)), LIMIT)
    assert [line["reason"] for line in egress.denials(actor)] == ["withdrawn"]
    await eventually(wire.reader.at_eof, LIMIT)


async def test_decisions_in_flight_share_one_question(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    gate = egress.api.gates[actor] = asyncio.Event()
    wires = [await egress.tunnel(actor, origin.port) for _ in range(10)]
    for wire in wires:
        await wire.send(request("GET", "/", ("host", name)))
    await eventually(lambda: egress.api.asked[POLICY, actor] == 1)
    gate.set()
    assert [(await wire.response()).status for wire in wires] == [200] * 10
    assert egress.api.asked[POLICY, actor] == 1


@pytest.mark.egress_gateway(policy_ttl=0.0)
async def test_without_a_time_each_decision_asks(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    for count in (1, 2, 3):
        assert await status(egress, actor, origin.port, name) == 200
        assert egress.api.asked[POLICY, actor] == count
