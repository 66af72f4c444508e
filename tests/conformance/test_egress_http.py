"""Cleartext HTTP that leaves an actor: each request on its own Host."""

import asyncio
import json
from collections import Counter
from typing import Any

import grpc
import pytest

from tests.support.egress_stage import DIALLED, EgressStage, http
from tests.support.eventually import eventually
from tests.support.origins import answering, echo
from tests.support.raw_h2 import RawH2
from tests.support.raw_http1 import request
from tests.support.router_process import scrape


def reason(answer: Any) -> tuple[int, str | None]:
    return answer.status, answer.head.get("ate-reason")


# B081
@pytest.mark.conformance("E-06", "E-22")
async def test_without_a_policy_nothing_passes(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    answer = await egress.get(egress.actor(), origin.port, name)
    assert reason(answer) == (403, "no-egress-policy")
    assert answer.data.endswith(b"\n")
    assert origin.connections == 0


@pytest.mark.conformance("E-06", "E-22")
async def test_a_host_or_a_port_without_a_rule_is_refused_with_its_reason(
    egress: EgressStage,
) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http("other.example", ports=[origin.port]), http(name, ports=[1]))
    assert reason(await egress.get(actor, origin.port, "third.example")) == (403, "no-egress-rule")
    assert reason(await egress.get(actor, origin.port, name)) == (403, "egress-port-denied")
    lines = egress.denials(actor)
    assert [(line["host"], line["reason"]) for line in lines] == [
        ("third.example", "no-egress-rule"),
        (name, "egress-port-denied"),
    ]
    assert {line["port"] for line in lines} == {origin.port}
    assert origin.connections == 0


@pytest.mark.conformance("E-22")
async def test_people_can_ask_what_was_denied_to_an_actor(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http("other.example"), http(name, ports=[1]))
    assert await egress.recent(actor) == []
    for _ in range(2):
        await egress.get(actor, origin.port, "third.example")
    await egress.get(actor, origin.port, name)
    newest, older = await egress.recent(actor)
    assert (newest.kind, newest.host, newest.port) == ("http", name, origin.port)
    assert (newest.reason, newest.times) == ("egress-port-denied", 1)
    assert (older.host, older.reason, older.times) == ("third.example", "no-egress-rule", 2)
    assert older.first <= older.last <= newest.last


@pytest.mark.conformance("E-09", "E-11")
async def test_the_defaults_are_port_80_and_the_name_that_the_policy_allows(
    egress: EgressStage,
) -> None:
    origin = await egress.origin(echo, port=80)
    name = egress.name(origin.address)
    answer = await egress.get(egress.actor(http(name)), 80, name)
    assert json.loads(answer.data)["origin"] == origin.address
    assert ["host", name] in json.loads(answer.data)["fields"]


# B095
@pytest.mark.conformance("E-11")
async def test_neither_the_dialled_address_nor_the_hosts_port_picks_the_destination(
    egress: EgressStage,
) -> None:
    name, origin = await egress.web(echo)
    elsewhere = await egress.origin(echo, port=origin.port)
    actor = egress.actor(http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port, address=elsewhere.address)
    answer = await wire.ask(request("GET", "/", ("host", f"{name}:{elsewhere.port + 1}")))
    told = json.loads(answer.data)
    assert told["origin"] == origin.address
    assert ["host", f"{name}:{origin.port}"] in told["fields"]
    assert elsewhere.connections == 0


# B099
@pytest.mark.conformance("E-17")
@pytest.mark.only("agentgateway")
async def test_the_policy_is_read_for_each_request(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port)
    ask = request("GET", "/", ("host", name))
    assert (await wire.ask(ask)).status == 200
    egress.api.allow(actor, http("other.example", ports=[origin.port]))
    assert reason(await wire.ask(ask)) == (403, "no-egress-rule")
    egress.api.allow(actor, http(name, ports=[origin.port]))
    assert (await wire.ask(ask)).status == 200
    assert egress.api.asked["GetActorEgressPolicy", actor] == 3
    assert origin.connections == 1


@pytest.mark.conformance("E-17")
async def test_requests_that_come_together_share_a_reading_that_began_after_them(
    egress: EgressStage,
) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    gate = egress.api.gates[actor] = asyncio.Event()
    first = await egress.tunnel(actor, origin.port)
    late = [await egress.tunnel(actor, origin.port) for _ in range(20)]
    ask = request("GET", "/", ("host", name))
    asked = asyncio.create_task(first.ask(ask))
    method = ("GetActorEgressPolicy", actor)
    await eventually(lambda: egress.api.asked[method] == 1)
    # What the first one is judged by was read before this.
    egress.api.allow(actor, http("other.example"))
    for wire in late:
        await wire.send(ask)
    gate.set()
    assert (await asked).status == 200
    assert {reason(await wire.response()) for wire in late} == {(403, "no-egress-rule")}
    assert egress.api.asked[method] <= len(late) / 2


# B080
@pytest.mark.conformance("E-06")
async def test_a_policy_that_cannot_be_read_is_503_and_asked_for_again(egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200))
    actor = egress.actor(http(name, ports=[origin.port]))
    egress.api.failing["GetActorEgressPolicy", actor] = grpc.StatusCode.UNAVAILABLE
    wire = await egress.tunnel(actor, origin.port)
    ask = request("GET", "/", ("host", name))
    assert reason(await wire.ask(ask)) == (503, "policy-unavailable")
    del egress.api.failing["GetActorEgressPolicy", actor]
    assert (await wire.ask(ask)).status == 200


# B085
@pytest.mark.conformance("E-10")
@pytest.mark.parametrize("absolute", ["allowed", "denied"])
async def test_an_absolute_target_and_a_host_that_differ_are_400(
    egress: EgressStage, absolute: str
) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    target, host = (name, "denied.example") if absolute == "allowed" else ("denied.example", name)
    wire = await egress.tunnel(actor, origin.port)
    answer = await wire.ask(request("GET", f"http://{target}/", ("host", host)))
    assert answer.status == 400
    assert origin.connections == 0


@pytest.mark.conformance("E-10")
async def test_an_absolute_target_of_the_same_host_passes(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port)
    answer = await wire.ask(request("GET", f"http://{name}/a?b", ("host", name)))
    assert json.loads(answer.data)["start"] == "GET /a?b HTTP/1.1"


# B120: nothing to relay raw, since no upgrade leaves an actor.
@pytest.mark.conformance("E-13", "E-22")
async def test_upgrades_and_nested_connects_are_refused_and_nothing_is_dialled(
    egress: EgressStage,
) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http("*", ports="all"))
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", "x")]
    wire = await egress.tunnel(actor, origin.port)
    refused = await wire.ask(request("GET", "/", ("host", name), *upgrade))
    assert reason(refused) == (403, "upgrade-denied")
    wire = await egress.tunnel(actor, origin.port)
    refused = await wire.ask(request("CONNECT", f"{name}:443", ("host", f"{name}:443")))
    assert reason(refused) == (403, "connect-denied")
    assert origin.connections == 0


@pytest.mark.conformance("E-13")
async def test_another_upgrade_is_dropped_and_the_request_goes_on(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    fields = [
        ("connection", "upgrade, http2-settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "x"),
    ]
    wire = await egress.tunnel(actor, origin.port)
    told = json.loads((await wire.ask(request("GET", "/", ("host", name), *fields))).data)
    assert not {"upgrade", "http2-settings"} & {key.lower() for key, _ in told["fields"]}


# B106
@pytest.mark.conformance("E-11")
async def test_nothing_that_an_actor_writes_picks_another_way_out(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    elsewhere = await egress.origin(echo, port=origin.port)
    actor = egress.actor(http(name, ports=[origin.port]))
    other = f"{elsewhere.address}:{elsewhere.port}"
    fields = [
        ("x-forwarded-host", other),
        ("forwarded", f"host={other}"),
        ("x-original-url", f"http://{other}/"),
        ("x-envoy-original-dst-host", other),
        ("proxy-authorization", "Basic YTpi"),
        ("proxy-connection", "keep-alive"),
        ("alt-used", other),
    ]
    answer = await egress.get(actor, origin.port, name, *fields)
    told = json.loads(answer.data)
    assert told["origin"] == origin.address
    assert elsewhere.connections == 0
    assert not {"proxy-authorization", "proxy-connection"} & {key for key, _ in told["fields"]}


# B107
@pytest.mark.conformance("E-04")
async def test_an_origin_sees_nothing_that_speaks_for_the_gateway(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    forged = ["ate-target-actor", "x-ate-actor", "x-forwarded-client-cert", "ate-reason"]
    told = json.loads(
        (await egress.get(actor, origin.port, name, *((field, "team/a") for field in forged))).data
    )
    assert not set(forged) & {key.lower() for key, _ in told["fields"]}


# B107
@pytest.mark.conformance("E-04")
async def test_no_trailer_speaks_for_the_gateway(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    forged = ["ate-target-actor", "x-ate-actor", "x-forwarded-client-cert", "ate-reason"]
    trailers = "".join(f"{field}: team/a\r\n" for field in [*forged, "x-other"])
    wire = await egress.tunnel(actor, origin.port)
    await wire.send(request("POST", "/", ("host", name), ("transfer-encoding", "chunked")))
    await wire.send(f"1\r\na\r\n0\r\n{trailers}\r\n".encode())
    told = json.loads((await wire.response()).data)
    assert told["trailers"] == [["x-other", "team/a"]]


@pytest.mark.conformance("E-22")
async def test_no_origin_passes_its_answer_off_as_a_denial(egress: EgressStage) -> None:
    forged = [("ate-reason", "no-egress-rule"), ("x-ate-actor", "a/b"), ("x-other", "stays")]
    name, origin = await egress.web(answering(200, b"ok", *forged))
    down = await egress.origin(echo)
    unreachable = egress.name(down.address)
    await down.close()
    actor = egress.actor(http(name, unreachable, ports=[origin.port, down.port]))
    answer = await egress.get(actor, origin.port, name)
    assert (answer.status, answer.data, answer.head.get("x-other")) == (200, b"ok", "stays")
    assert not {"ate-reason", "x-ate-actor"} & {key.lower() for key, _ in answer.head.fields}
    # Whoever carries the bytes writes its denials in their order.
    assert reason(await egress.get(actor, down.port, unreachable)) == (502, "origin-unreachable")
    await eventually(lambda: bool(egress.denials(actor)))
    assert [line["reason"] for line in egress.denials(actor)] == ["origin-unreachable"]


@pytest.mark.conformance("E-11")
async def test_a_request_reaches_its_origin_as_it_was_sent(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    sent = [
        ("accept", "*/*"),
        ("x-one", "1"),
        ("x-one", "2"),
        ("cookie", "a=b"),
        ("user-agent", "u"),
    ]
    told = json.loads((await egress.get(actor, origin.port, name, *sent)).data)
    fields = [(key.lower(), value) for key, value in told["fields"]]
    assert sorted(fields) == sorted([("host", f"{name}:{origin.port}"), *sent])


# B094
@pytest.mark.conformance("E-12")
async def test_the_address_that_was_checked_is_the_one_that_is_dialled(egress: EgressStage) -> None:
    origin = await egress.origin(echo)
    name = egress.name()
    egress.names.names[name] = [["10.255.0.1", origin.address], ["10.255.0.1"]]
    actor = egress.actor(http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port)
    ask = request("GET", "/", ("host", name), ("connection", "close"))
    assert json.loads((await wire.ask(ask)).data)["origin"] == origin.address
    assert egress.names.asked[name] == 1
    assert reason(await egress.get(actor, origin.port, name)) == (403, "address-denied")


@pytest.mark.conformance("E-11", "E-12")
@pytest.mark.egress_gateway(own_resolver=False)
async def test_without_name_servers_of_its_own_the_gateway_asks_the_systems(
    egress: EgressStage,
) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    assert json.loads((await egress.get(actor, origin.port, name)).data)["origin"] == origin.address
    assert egress.names.asked[name] == 1


# B090, B093
@pytest.mark.conformance("E-12")
@pytest.mark.egress_gateway(allowed=())
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "10.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "100.64.0.1",
    ],
)
async def test_an_address_below_the_floor_is_refused_by_name(
    egress: EgressStage, address: str
) -> None:
    actor = egress.actor(http("*", ports="all"))
    assert reason(await egress.get(actor, 80, egress.name(address))) == (403, "address-denied")
    assert reason(await egress.get(actor, 80, address)) == (403, "address-denied")


# B079
@pytest.mark.conformance("E-22")
async def test_a_host_that_is_down_or_unknown_is_told_from_a_denied_one(
    egress: EgressStage,
) -> None:
    origin = await egress.origin(echo)
    down, unknown = egress.name(origin.address), "nowhere.test.example"
    actor = egress.actor(http(down, unknown, ports=[origin.port]))
    await origin.close()
    assert reason(await egress.get(actor, origin.port, down)) == (502, "origin-unreachable")
    assert reason(await egress.get(actor, origin.port, unknown)) == (502, "origin-unresolved")
    noted = {(down, "origin-unreachable"), (unknown, "origin-unresolved")}
    await eventually(lambda: len(egress.denials(actor)) == len(noted))
    assert {(line["host"], line["reason"]) for line in egress.denials(actor)} == noted


# The first of the tunnels says nothing until the last one is open.
@pytest.mark.egress_gateway(sniff=60.0)
@pytest.mark.conformance("E-12", "E-22")
async def test_names_that_nobody_answers_hold_up_only_the_actor_that_asks_for_them(
    egress: EgressStage,
) -> None:
    name, origin = await egress.web(answering(200))
    busy = egress.actor(http(f"*.{egress.names.silent}", ports=[origin.port]))
    other = egress.actor(http(name, ports=[origin.port]))
    # Open before anybody asks, so that all names are looked up at the same time.
    hosts = [f"n{number}.{egress.names.silent}" for number in range(64)]
    wires = [(host, await egress.tunnel(busy, origin.port)) for host in hosts]
    asking = [
        asyncio.create_task(wire.ask(request("GET", "/", ("host", host)))) for host, wire in wires
    ]
    assert (await egress.get(other, origin.port, name)).status == 200
    told = Counter([reason(answer) for answer in await asyncio.gather(*asking)])
    assert set(told) == {(503, "too-many-lookups"), (502, "origin-unresolved")}
    assert told[502, "origin-unresolved"] >= 32
    noted = Counter(line["reason"] for line in egress.denials(busy))
    assert noted["too-many-lookups"] == told[503, "too-many-lookups"]
    assert egress.denials(other) == []


@pytest.mark.conformance("E-21")
async def test_http2_from_an_actor_reaches_an_origin_that_speaks_http1(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    async with await RawH2.over(await egress.tunnel(actor, origin.port)) as connection:
        fields = [(":method", "GET"), (":scheme", "http"), (":authority", name), (":path", "/h2")]
        answer = await connection.ask(fields)
        assert json.loads(bytes(answer.data))["start"] == "GET /h2 HTTP/1.1"
        denied = [(k, "denied.example" if k == ":authority" else v) for k, v in fields]
        refused = await connection.ask(denied)
        assert (refused.status, refused.get("ate-reason")) == (403, "no-egress-rule")
        contradiction = await connection.ask([*fields, ("host", "denied.example")])
        assert contradiction.status == 400


@pytest.mark.conformance("E-07")
async def test_a_large_body_streams_both_ways(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    wire = await egress.tunnel(actor, origin.port, address=DIALLED)
    body = b"x" * (4 << 20)
    answer = await wire.ask(request("POST", "/", ("host", name), body=body))
    assert len(json.loads(answer.data)["body"]) == len(body)


@pytest.mark.conformance("E-22")
async def test_denials_are_counted_without_names(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    await egress.get(egress.actor(), origin.port, name)
    metrics = await scrape(egress.gateway.stats)
    assert metrics.sum("atenet_egress_decisions_total", outcome="no-egress-policy") >= 1
    assert "team" not in metrics.text
