"""The hop to the worker: one mTLS HTTP/2 connection, tunnels as streams, the right peer."""

import asyncio
import json

import pytest

from tests.support import raw_h2
from tests.support.addresses import bound_socket
from tests.support.eventually import eventually, within
from tests.support.grpc_origin import method
from tests.support.http1_message import chunk
from tests.support.origins import Exchange, answering, echo, held
from tests.support.pki import ROUTER_ID, WORKER_ID
from tests.support.raw_http1 import request
from tests.support.resume_steps import Placement, gated, resumed
from tests.support.scripted_worker import relaying
from tests.support.stage import Stage, new_ref
from tests.support.tunnel_stream import TunnelStream, relay

OTHER_ID = "spiffe://cluster.local/ns/default/sa/other"


@pytest.mark.conformance("I-25")
async def test_a_tunnel_is_a_connect_that_names_the_actor_and_its_port(stage: Stage) -> None:
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(worker.ip)
    assert (await stage.get(actor)).status == 200
    headers = worker.tunnels[0].headers
    assert headers[":method"] == "CONNECT"
    assert headers[":authority"] == f"{worker.ip}:80"
    assert headers["ate-target-actor"] == actor.ref
    assert ":protocol" not in headers


@pytest.mark.conformance("I-25", "I-06")
async def test_the_tunnel_carries_the_port_of_the_clients_connect(stage: Stage) -> None:
    origin = await stage.origin(echo, port=9393)
    worker = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(worker.ip)
    async with await raw_h2.RawH2.open(stage.router.connect) as outer:
        opened = await outer.start(
            [(":method", "CONNECT"), (":authority", "x:9393"), actor.header], end=False
        )
        await outer.send(opened, request("GET", "/", ("host", "a")))
        await outer.wait(lambda: b"HTTP/1.1 200" in opened.data)
    assert {tunnel.port for tunnel in worker.tunnels} == {9393}


@pytest.mark.conformance("I-25")
async def test_the_router_presents_its_own_identity_and_speaks_h2(stage: Stage) -> None:
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    assert (await stage.get(stage.actor_on(worker.ip))).status == 200
    tls = worker.connections[0].tls
    assert ("URI", ROUTER_ID) in tls.getpeercert()["subjectAltName"]
    assert tls.selected_alpn_protocol() == "h2"
    assert tls.version() in ("TLSv1.2", "TLSv1.3")


@pytest.mark.conformance("I-25")
async def test_a_worker_that_speaks_plaintext_gets_no_request(stage: Stage) -> None:
    heard = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(listen, sock=bound_socket(8443))
    stage.closing(server.close)
    actor = stage.actor_on(server.sockets[0].getsockname()[0])
    answer = await stage.request(actor, "GET", "/secret-path")
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    # A ClientHello at most.
    assert heard[:1] in (b"", b"\x16")
    assert b"secret-path" not in heard
    assert actor.ref.encode() not in heard


@pytest.mark.conformance("I-26", "I-17")
async def test_a_burst_at_three_cold_actors_on_one_worker_shares_one_connection(
    stage: Stage,
) -> None:
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    actors = [stage.actor_on(worker.ip) for _ in range(3)]
    gate = asyncio.Event()
    for actor in actors:
        stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    burst = asyncio.gather(*(stage.get(actors[number % 3]) for number in range(50)))
    for actor in actors:
        await stage.api.wait_for_calls(actor.ref, 1)
    gate.set()
    assert [answer.status for answer in await burst] == [200] * 50
    assert len(worker.connections) <= stage.dataplane.worker_connections


@pytest.mark.conformance("I-26")
async def test_more_tunnels_than_the_workers_stream_limit_all_finish(stage: Stage) -> None:
    # B053
    gate = asyncio.Event()
    origin = await stage.origin(held(gate, answering()))
    worker = await stage.scripted_worker(relaying(origin.address), max_streams=100)
    actor = stage.actor_on(worker.ip)
    burst = asyncio.create_task(stage.many(300, actor))
    await origin.wait_for_requests(100)
    gate.set()
    assert [answer.status for answer in await burst] == [200] * 300
    assert max(connection.most_streams for connection in worker.connections) <= 100


@pytest.mark.conformance("I-26")
async def test_a_tunnel_is_never_used_for_another_actor(stage: Stage) -> None:
    # B048: idle connections are the activation's own.
    origins = [await stage.origin(answering(200, name)) for name in (b"first", b"second")]
    addresses: dict[str, str] = {}

    async def answer(stream: TunnelStream) -> None:
        await relay(stream, addresses[stream.headers["ate-target-actor"]])

    worker = await stage.scripted_worker(answer)
    actors = [stage.actor_on(worker.ip) for _ in origins]
    addresses.update(
        {actor.ref: origin.address for actor, origin in zip(actors, origins, strict=True)}
    )
    for _ in range(3):
        assert [(await stage.get(actor)).data for actor in actors] == [b"first", b"second"]


@pytest.mark.conformance("I-26")
async def test_no_connection_crosses_an_activation(stage: Stage) -> None:
    # B048, B067: the same actor on the same worker, suspended and resumed between two requests.
    actor, origin = await stage.actor(echo)
    assert actor.activation is not None
    assert (await stage.get(actor)).status == 200
    await stage.worker.deactivate(actor.activation)
    stage.worker.activate(actor.ref, origin.address, uid=actor.activation.uid)
    stage.api.place(actor.place.resumed_here())
    assert (await stage.get(actor)).status == 200
    assert origin.connections == 2


@pytest.mark.conformance("I-26")
@pytest.mark.router(cache_ttl=0.0)
async def test_a_kept_connection_is_left_when_the_control_plane_names_a_new_activation(
    stage: Stage,
) -> None:
    # B048: the worker has not noticed yet; the assignment alone decides.
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(worker.ip)
    assert (await stage.get(actor)).status == 200
    stage.api.place(actor.place.resumed_here())
    assert (await stage.get(actor)).status == 200
    assert (origin.connections, len(worker.tunnels)) == (2, 2)


@pytest.mark.conformance("I-26")
async def test_a_deleted_and_recreated_actor_gets_connections_of_its_own(stage: Stage) -> None:
    old, new = (
        await stage.origin(answering(200, b"old")),
        await stage.origin(answering(200, b"new")),
    )
    actor = stage.actor_at(old.address)
    assert actor.activation is not None
    assert (await stage.get(actor)).data == b"old"
    await stage.worker.deactivate(actor.activation)
    stage.actor_at(new.address, ref=actor.ref)
    assert (await stage.get(actor)).data == b"new"


@pytest.mark.conformance("I-28", "I-27")
async def test_a_worker_with_another_id_of_the_same_authority_gets_no_tunnel(stage: Stage) -> None:
    origin = await stage.origin(echo)
    credential = stage.pki.write("other-worker.pem", stage.pki.pods.issue(uris=[OTHER_ID]))
    worker = await stage.scripted_worker(relaying(origin.address), credential=credential)
    answer = await stage.get(stage.actor_on(worker.ip))
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    assert (worker.tunnels, origin.exchanges) == ([], [])


WRONG = {
    "two ids": [WORKER_ID, OTHER_ID],
    "a longer path": [f"{WORKER_ID}/x"],
    "a trailing slash": [f"{WORKER_ID}/"],
    "another trust domain": [WORKER_ID.replace("cluster.local", "cluster.locale")],
    "no id": [],
}


@pytest.mark.conformance("I-28", "I-27")
@pytest.mark.parametrize("uris", WRONG.values(), ids=WRONG.keys())
async def test_a_worker_that_is_not_exactly_the_named_one_gets_no_tunnel(
    stage: Stage, uris: list[str]
) -> None:
    origin = await stage.origin(echo)
    bundle = stage.pki.pods.issue(uris=uris, dns=[] if uris else ["worker.example"])
    worker = await stage.scripted_worker(
        relaying(origin.address), credential=stage.pki.write(f"{new_ref()[:8]}.pem", bundle)
    )
    assert (await stage.get(stage.actor_on(worker.ip))).status == 503
    assert worker.tunnels == []


@pytest.mark.conformance("I-28", "I-27")
async def test_an_assignment_without_an_id_means_the_pools(stage: Stage) -> None:
    origin = await stage.origin(echo)
    right = await stage.scripted_worker(relaying(origin.address))
    wrong = await stage.scripted_worker(
        relaying(origin.address),
        credential=stage.pki.write("unnamed-other.pem", stage.pki.pods.issue(uris=[OTHER_ID])),
    )
    for worker, status in ((right, 200), (wrong, 503)):
        ref = new_ref()
        stage.api.place(Placement(ref, worker.ip, spiffe_id=None))
        assert (await stage.get(ref)).status == status


@pytest.mark.conformance("I-28", "I-27")
async def test_a_worker_of_a_foreign_authority_gets_no_tunnel(stage: Stage) -> None:
    origin = await stage.origin(echo)
    bundle = stage.pki.foreign.issue(uris=[WORKER_ID])
    worker = await stage.scripted_worker(
        relaying(origin.address), credential=stage.pki.write("foreign.pem", bundle)
    )
    assert (await stage.get(stage.actor_on(worker.ip))).status == 503
    assert worker.tunnels == []


@pytest.mark.conformance("I-28", "I-27")
async def test_a_worker_with_an_expired_certificate_gets_no_tunnel(stage: Stage) -> None:
    origin = await stage.origin(echo)
    bundle = stage.pki.pods.issue(uris=[WORKER_ID], expired=True)
    worker = await stage.scripted_worker(
        relaying(origin.address), credential=stage.pki.write("expired.pem", bundle)
    )
    assert (await stage.get(stage.actor_on(worker.ip))).status == 503
    assert worker.tunnels == []


@pytest.mark.conformance("I-25")
async def test_any_2xx_opens_the_tunnel(stage: Stage) -> None:
    # B064
    async def created(stream: TunnelStream) -> None:
        await stream.respond(201)
        await stream.read()
        await stream.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    worker = await stage.scripted_worker(created)
    assert (await stage.get(stage.actor_on(worker.ip))).data == b"ok"


@pytest.mark.conformance("I-25", "I-23")
@pytest.mark.parametrize("status", [400, 403, 405, 407, 500, 502])
async def test_a_workers_refusal_is_one_clear_error(stage: Stage, status: int) -> None:
    # B064: with a body that must not leak.
    async def refuse(stream: TunnelStream) -> None:
        await stream.respond(status, [("x-internal", "10.1.2.3")])
        await stream.write(b"internals of worker-3")
        await stream.end()

    worker = await stage.scripted_worker(refuse)
    answer = await stage.get(stage.actor_on(worker.ip))
    assert answer.status in (502, 503)
    assert answer.head.get("ate-reason") in ("worker-unreachable", "actor-connect-failed")
    assert b"worker-3" not in answer.data
    assert "x-internal" not in answer.head.names


@pytest.mark.conformance("I-25", "I-29")
async def test_no_request_byte_flows_before_the_worker_opened_the_tunnel(stage: Stage) -> None:
    # B042: so that nothing can be replayed half.
    origin = await stage.origin(echo)
    gate, connected = asyncio.Event(), asyncio.Event()
    before: list[int] = []

    async def slow(stream: TunnelStream) -> None:
        connected.set()
        await gate.wait()
        before.append(stream.received)
        await relay(stream, origin.address)

    worker = await stage.scripted_worker(slow)
    actor = stage.actor_on(worker.ip)
    connection = await stage.http1()
    await connection.send(
        request("POST", "/", ("host", "a"), actor.header, ("transfer-encoding", "chunked"))
        + chunk(b"early")
        + b"0\r\n\r\n"
    )
    await connected.wait()
    await asyncio.sleep(0.2)
    gate.set()
    assert json.loads((await connection.response()).data)["body"] == "early"
    assert before == [0]


@pytest.mark.conformance("I-26", "I-11")
@pytest.mark.only("agentgateway")
@pytest.mark.router(actor_idle=0.3)
async def test_a_kept_connection_that_is_given_up_ends_without_a_reset(stage: Stage) -> None:
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    assert (await stage.get(stage.actor_on(worker.ip))).status == 200
    await origin.wait_no_connections()
    (tunnel,) = worker.tunnels
    assert (tunnel.closed, tunnel.reset_code) == (True, None)


@pytest.mark.conformance("I-26", "I-08")
@pytest.mark.only("agentgateway")
@pytest.mark.router(actor_idle=0.3)
async def test_a_kept_grpc_connection_that_is_given_up_ends_without_a_reset(stage: Stage) -> None:
    origin = await stage.grpc_origin()
    worker = await stage.scripted_worker(relaying(origin.address))
    actor = stage.actor_on(worker.ip)
    call = stage.grpc_channel().unary_unary(method("Unary"))
    assert await call(b"hello", metadata=[actor.header], timeout=20) == b"echo:hello"
    (tunnel,) = worker.tunnels
    await eventually(lambda: tunnel.closed)
    assert tunnel.reset_code is None


@pytest.mark.conformance("I-11")
@pytest.mark.only("agentgateway")
async def test_an_upload_reaches_an_actor_that_keeps_no_connection(stage: Stage) -> None:
    # What was sent last is not overtaken by a reset, however slowly the actor reads.
    sizes: asyncio.Queue[int] = asyncio.Queue()

    async def slow(exchange: Exchange) -> None:
        await exchange.answer(200, b"early", ("connection", "close"))
        await asyncio.sleep(0.3)
        sizes.put_nowait(len((await exchange.read_body()).data))
        exchange.keep_alive = False

    actor, _ = await stage.actor(slow)
    answer = await stage.request(actor, "POST", "/", body=b"u" * 200_000)
    assert answer.data == b"early"
    assert await within(sizes.get(), 20) == 200_000
