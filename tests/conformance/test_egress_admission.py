"""Who may open an egress tunnel."""

import ssl
import time

import grpc
import pytest

from tests.support.egress_pki import tunnel_id
from tests.support.egress_stage import EgressStage, http
from tests.support.endpoint import Endpoint
from tests.support.origins import echo
from tests.support.raw_http1 import RawHttp1, Response, request

CONNECT = request("CONNECT", "203.0.113.9:80", ("host", "203.0.113.9:80"))


async def told(egress: EgressStage, credential: bytes) -> Response:
    """How the gateway answers a CONNECT with this certificate."""
    wire = await egress.worker(egress.pki.client(credential))
    await wire.send(CONNECT)
    return await wire.response()


async def is_cut_off(egress: EgressStage, credential: bytes | None) -> bool:
    """Whether the gateway ends the connection without a word of HTTP."""
    try:
        wire = await egress.worker(egress.pki.client(credential))
        await wire.send(CONNECT)
        return await wire.reader.read() == b""
    except (ssl.SSLError, ConnectionError):
        return True


@pytest.mark.conformance("E-04", "E-05")
@pytest.mark.parametrize("state", ["RUNNING", "RESUMING"])
async def test_the_worker_of_an_actor_that_runs_or_boots_gets_its_tunnel(
    egress: EgressStage, state: str
) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]), state=state)
    assert (await egress.get(actor, origin.port, name)).status == 200


# B131
@pytest.mark.conformance("E-04")
@pytest.mark.parametrize(
    "uri",
    [
        "spiffe://substrate-actor.local/actor/{}",
        "spiffe://substrate-actor.local/worker-for-actor/{}/more",
        "spiffe://substrate-actor.local/ateom-for-actor/{}",
        "spiffe://cluster.local/worker-for-actor/{}",
        "spiffe://substrate-actor.local/worker-for-actor/UPPER/case",
    ],
)
async def test_another_identity_of_the_same_authority_is_told_no(
    egress: EgressStage, uri: str
) -> None:
    actor = egress.actor(http("*", ports="all"))
    answer = await told(egress, egress.pki.actors.issue(uris=[uri.format(actor)]))
    assert (answer.status, answer.head.get("ate-reason")) == (403, "not-a-tunnel-certificate")


# B128, B131
@pytest.mark.conformance("E-04")
@pytest.mark.parametrize(
    "kind",
    ["none", "two", "two kinds", "no uri", "odd", "expired", "usage", "authority", "foreign"],
)
async def test_a_certificate_that_is_no_tunnels_fails_in_the_handshake(
    egress: EgressStage, kind: str
) -> None:
    actor = egress.actor(http("*", ports="all"))
    pki, uri = egress.pki, tunnel_id(actor)
    credential = {
        "none": lambda: None,
        "two": lambda: pki.actors.issue(uris=[uri, tunnel_id("team/other")]),
        "two kinds": lambda: pki.actors.issue(uris=[uri, "https://a.example/"]),
        "no uri": lambda: pki.actors.issue(dns=["a.example"]),
        "odd": lambda: pki.actors.issue(uris=[uri.replace("worker", "%77orker")]),
        "expired": lambda: pki.actors.issue(uris=[uri], expired=True),
        "usage": lambda: pki.server_only(actor),
        "authority": lambda: pki.authority_with_name(actor),
        "foreign": lambda: pki.pki.foreign.issue(uris=[uri]),
    }[kind]()
    assert await is_cut_off(egress, credential)
    assert egress.api.asked["GetActor", actor] == 0


# B138
@pytest.mark.conformance("E-04")
async def test_fields_that_claim_another_actor_are_ignored(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    other = egress.actor(http(name, ports=[origin.port]))
    actor = egress.actor(http("elsewhere.example", ports=[origin.port]))
    claims = [
        ("ate-target-actor", other),
        ("x-forwarded-client-cert", f"URI={tunnel_id(other)}"),
        ("x-ate-actor", other),
    ]
    wire, answer = await egress.connect(actor, origin.port, *claims)
    assert answer.status == 200
    refused = await wire.ask(request("GET", "/", ("host", name), *claims))
    assert refused.status == 403
    assert [line["reason"] for line in egress.denials(actor)] == ["no-egress-rule"]
    assert egress.denials(other) == []


@pytest.mark.egress_gateway(routing=True)
@pytest.mark.conformance("E-05", "I-01")
@pytest.mark.only("agentgateway")
async def test_one_process_can_be_router_and_gateway(egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor = egress.actor(http(name, ports=[origin.port]))
    assert (await egress.get(actor, origin.port, name)).status == 200
    (plain,) = egress.gateway.process.ready["listeners"]["default"]
    wire = await RawHttp1.open(Endpoint.parse(plain))
    answer = await wire.ask(request("GET", "/", ("host", "a.example")))
    assert (answer.status, answer.head.get("ate-reason")) == (404, "bad-target")
    await wire.close()


# B082
@pytest.mark.conformance("E-05")
async def test_an_actor_that_is_not_there_is_told_so(egress: EgressStage) -> None:
    _, answer = await egress.connect("team/nobody", 80)
    assert (answer.status, answer.head.get("ate-reason")) == (403, "actor-unknown")


@pytest.mark.conformance("E-05")
@pytest.mark.parametrize("state", ["SUSPENDING", "SUSPENDED", "PAUSED", "CRASHED", "DELETING"])
async def test_an_actor_that_does_not_run_gets_no_tunnel(egress: EgressStage, state: str) -> None:
    actor = egress.actor(http("*", ports="all"), state=state)
    _, answer = await egress.connect(actor, 80)
    assert (answer.status, answer.head.get("ate-reason")) == (403, "actor-not-running")


@pytest.mark.conformance("E-05")
async def test_a_control_plane_that_does_not_answer_is_another_refusal(egress: EgressStage) -> None:
    actor = egress.actor(http("*", ports="all"))
    egress.api.failing["GetActor", actor] = grpc.StatusCode.UNAVAILABLE
    _, answer = await egress.connect(actor, 80)
    assert (answer.status, answer.head.get("ate-reason")) == (503, "control-plane-unavailable")
    assert answer.head.get("retry-after")
    del egress.api.failing["GetActor", actor]
    assert (await egress.connect(actor, 80))[1].status == 200


# B132
@pytest.mark.conformance("E-05")
async def test_a_certificate_older_than_the_actor_is_refused(egress: EgressStage) -> None:
    actor = egress.actor(http("*", ports="all"))
    egress.api.put(actor, created=int(time.time()))
    _, answer = await egress.connect(actor, 80)
    assert (answer.status, answer.head.get("ate-reason")) == (403, "actor-replaced")


@pytest.mark.conformance("E-04")
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request("GET", "/", ("host", "a.example")), 405),
        (request("CONNECT", "a.example:443", ("host", "a.example:443")), 400),
        (request("CONNECT", "[a.example]:443", ("host", "a.example:443")), 400),
        (request("CONNECT", "203.0.113.9", ("host", "203.0.113.9")), 400),
        (request("CONNECT", "203.0.113.9:0", ("host", "203.0.113.9")), 400),
        (request("CONNECT", "127.1:80", ("host", "127.1")), 400),
    ],
)
async def test_a_tunnel_is_opened_by_connect_to_an_address(
    egress: EgressStage, asked: bytes, status: int
) -> None:
    actor = egress.actor(http("*", ports="all"))
    wire = await egress.worker(egress.pki.tunnel_client(actor))
    await wire.send(asked)
    assert (await wire.response()).status == status
