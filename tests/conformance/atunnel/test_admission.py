"""Which requests open a tunnel: T-02, T-03, T-04."""

import asyncio
import socket
from dataclasses import dataclass

import pytest
from atenet._engine import TUNNEL_STREAMS

from tests.conformance.atunnel.conftest import Serve, Worker, WorkerMaker, echo, eventually
from tests.support.actor_network import ActorNetwork
from tests.support.eventually import within
from tests.support.http1_message import Head
from tests.support.router_peer import (
    STALE,
    RouterPeer,
    connect_fields,
    connect_head,
    http1_peer,
    router_peer,
)


@dataclass(frozen=True)
class Answer:
    status: int
    stale: str | None
    kind: str | None
    body: bytes


async def ask(worker: Worker, version: str, actor: str | None, authority: str) -> Answer:
    """One CONNECT over either version."""
    if version == "h2":
        async with router_peer(worker.address, worker.pki) as peer:
            stream = await peer.h2.start(connect_fields(actor, authority), end=False)
            await peer.h2.head(stream)
            if stream.status != 200:
                await peer.h2.wait(lambda: stream.over)
            return Answer(
                stream.status, stream.get(STALE), stream.get("content-type"), bytes(stream.data)
            )
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head(actor, authority))
        head = await wire.head()
        return _answer(head, b"" if head.status == 200 else await wire.rest())


def _answer(head: Head, body: bytes) -> Answer:
    return Answer(head.status, head.get(STALE), head.get("content-type"), body)


def assert_one_line(answer: Answer) -> None:
    assert answer.kind == "text/plain; charset=utf-8"
    assert answer.body.endswith(b"\n")
    assert answer.body.count(b"\n") == 1


VERSIONS = pytest.mark.parametrize("version", ["h2", "http/1.1"])


@pytest.mark.conformance("T-02")
@VERSIONS
async def test_an_active_actors_port_opens(worker: Worker, echo_actor: str, version: str) -> None:
    assert await ask(worker, version, echo_actor, "any.host:80") == Answer(200, None, None, b"")


@pytest.mark.conformance("T-02")
@VERSIONS
@pytest.mark.parametrize(
    "named",
    [None, "", "team", "team/", "/echo", "team/echo/x", "Team/echo", "team/ec_ho", "team/-echo",
     "team/echo-", f"team/{'e' * 64}", "team/other", "other/echo", "echo/team"],
)  # fmt: skip
async def test_an_actor_that_is_not_here_is_stale(
    worker: Worker, echo_actor: str, version: str, named: str | None
) -> None:
    answer = await ask(worker, version, named, "any.host:80")
    assert (answer.status, answer.stale) == (421, "true")
    assert_one_line(answer)


@pytest.mark.conformance("T-02")
@VERSIONS
@pytest.mark.parametrize("authority", ["any.host", "any.host:", "any.host:0", "any.host:65536",
                                       "any.host:99999999999", "any.host:http"])  # fmt: skip
async def test_a_port_that_is_none_is_a_bad_request(
    worker: Worker, echo_actor: str, version: str, authority: str
) -> None:
    answer = await ask(worker, version, echo_actor, authority)
    assert (answer.status, answer.stale) == (400, None)
    assert_one_line(answer)


@pytest.mark.conformance("T-02")
@VERSIONS
async def test_the_actor_is_checked_before_the_port(worker: Worker, version: str) -> None:
    assert (await ask(worker, version, "team/nobody", "any.host:0")).status == 421


@pytest.mark.conformance("T-02")
@VERSIONS
async def test_a_repeated_header_names_nobody(
    worker: Worker, echo_actor: str, version: str
) -> None:
    if version == "h2":
        async with router_peer(worker.address, worker.pki) as peer:
            again = ("ate-target-actor", echo_actor)
            stream = await peer.h2.start(connect_fields(echo_actor, "x:80", again), end=False)
            assert (await peer.h2.head(stream)).status == 421
    else:
        async with http1_peer(worker.address, worker.pki) as wire:
            line = f"ate-target-actor: {echo_actor}\r\n".encode()
            await wire.send(b"CONNECT x:80 HTTP/1.1\r\n" + line * 2 + b"\r\n")
            assert (await wire.head()).status == 421


@pytest.mark.conformance("T-02")
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "connect"])
async def test_only_connect_is_served(worker: Worker, echo_actor: str, method: str) -> None:
    async with router_peer(worker.address, worker.pki) as peer:
        pseudo = [(":method", method), (":scheme", "https"), (":authority", "x:80"), (":path", "/")]
        stream = await peer.h2.start([*pseudo, ("ate-target-actor", echo_actor)])
        assert (await peer.h2.head(stream)).status == 405
        assert stream.get("allow") == "CONNECT"
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(f"{method} / HTTP/1.1\r\nate-target-actor: {echo_actor}\r\n\r\n".encode())
        head = await wire.head()
        assert (head.status, head.get("allow")) == (405, "CONNECT")


@pytest.mark.conformance("T-02")
@VERSIONS
async def test_a_refusing_port_is_a_bad_gateway(
    worker: Worker, echo_actor: str, version: str
) -> None:
    answer = await ask(worker, version, echo_actor, "x:81")
    assert (answer.status, answer.stale) == (502, None)
    assert_one_line(answer)


@pytest.mark.conformance("T-02")
async def test_a_silent_port_is_a_bad_gateway_in_bounded_time(
    make_worker: WorkerMaker, shared_network: ActorNetwork
) -> None:
    worker = make_worker(actor_dial={"timeout_ms": 200})
    worker.activate("void", shared_network)
    with shared_network.silent(83):
        assert (await ask(worker, "h2", "team/void", "x:83")).status == 502


@pytest.mark.conformance("T-02")
async def test_a_port_that_opens_just_after_a_restore_is_reached(
    make_worker: WorkerMaker, shared_network: ActorNetwork, serve: Serve
) -> None:
    # The window is long here so that a slow machine cannot miss it.
    worker = make_worker(actor_dial={"retry_window_ms": 20_000, "timeout_ms": 20_000})
    worker.activate("late", shared_network)
    asked = asyncio.create_task(ask(worker, "h2", "team/late", "x:82"))
    await eventually(lambda: worker.actor("late")["tunnels"] > 0)
    assert not asked.done()
    await serve(shared_network.listen(82), echo)
    assert (await asked).status == 200


@pytest.mark.conformance("T-02")
@pytest.mark.parametrize(
    "head",
    [b"\x00\r\n\r\n", b"CONNECT\r\n\r\n", b"CONNECT x:80 HTTP/9.9\r\n\r\n", b"CONNECT x:80 HTTP/1.1\r\nbad\r\n\r\n",
     b"CONNECT x:80 HTTP/1.1\r\nno colon here : x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
)  # fmt: skip
async def test_what_is_not_http_is_a_bad_request(worker: Worker, head: bytes) -> None:
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(head)
        assert (await wire.head()).status in {400, 405}


@pytest.mark.conformance("T-02")
async def test_a_head_without_end_is_refused_at_a_limit(worker: Worker) -> None:
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(b"CONNECT x:80 HTTP/1.1\r\nx: " + b"y" * 20_000)
        assert (await wire.head()).status == 431


@pytest.mark.conformance("T-03")
@VERSIONS
async def test_the_actor_sees_only_application_bytes(
    worker: Worker, shared_network: ActorNetwork, serve: Serve, version: str
) -> None:
    seen: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(await reader.read())
        writer.close()

    await serve(shared_network.listen(80), record)
    worker.activate("recorder", shared_network)
    if version == "h2":
        async with router_peer(worker.address, worker.pki) as peer:
            tunnel = await peer.open("team/recorder")
            await peer.send(tunnel, b"GET / HTTP/1.1\r\n\r\n", end=True)
            await peer.ended(tunnel)
    else:
        async with http1_peer(worker.address, worker.pki) as wire:
            await wire.send(connect_head("team/recorder", "x:80") + b"GET / HTTP/1.1\r\n\r\n")
            assert (await wire.head()).status == 200
            # TLS cannot half-close through asyncio: the whole connection goes.
    assert await within(seen, 10) == b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.conformance("T-04")
async def test_before_activation_nothing_reaches_the_actor(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork
) -> None:
    listener = shared_network.listen(80)
    with listener:
        refused = await router.request("team/late", early=b"early bytes")
        assert (refused.status, refused.get(STALE)) == (421, "true")
        worker.activate("late", shared_network)
        await router.open("team/late")
        accepted = 0
        listener.settimeout(0.2)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                break
            with connection:
                accepted += 1
        assert accepted == 1, "the refused request's connection reached the actor, too"


@pytest.mark.conformance("T-04")
async def test_a_namespace_that_is_none_opens_nothing(
    worker: Worker, router: RouterPeer, tmp_path: object
) -> None:
    for path in ("/nonexistent", "/dev/null", "/proc/self/ns/uts"):
        with pytest.raises(Exception, match="network namespace"):
            worker.tunnel.activate("team", "a", "1", netns=path, address="169.254.17.2")
    assert (await router.request("team/a")).status == 421


def test_bad_arguments_name_their_field(worker: Worker) -> None:
    own = "/proc/self/ns/net"
    cases = [
        (("Team", "a", "1"), own, "127.0.0.1", "atespace"),
        (("team", "a_b", "1"), own, "127.0.0.1", "name"),
        (("team", "a", ""), own, "127.0.0.1", "uid"),
        (("team", "a", "1"), own, "host", "address"),
    ]
    for names, netns, address, field in cases:
        with pytest.raises(ValueError, match=field):
            worker.tunnel.activate(*names, netns=netns, address=address)
    with pytest.raises(ValueError, match="grace_seconds"):
        worker.tunnel.deactivate("team", "a", "1", grace_seconds=-1)


def test_a_taken_address_is_named(make_worker: WorkerMaker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Exception, match=address):
            make_worker(listen=address)


async def test_atunnel_states_the_limit_that_routers_are_configured_with(
    router: RouterPeer, echo_actor: str
) -> None:
    await router.open(echo_actor)
    assert router.h2.h2.remote_settings.max_concurrent_streams == TUNNEL_STREAMS
