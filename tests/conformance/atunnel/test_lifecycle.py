"""An activation's beginning and end: T-05, T-06."""

import asyncio
import time
from pathlib import Path

import h2.errors
import pytest

from tests.conformance.atunnel.conftest import Serve, Worker, echo, eventually
from tests.support.actor_network import ACTOR, ActorNetwork
from tests.support.eventually import within
from tests.support.router_peer import STALE, RouterPeer, connect_head, http1_peer

CANCEL = int(h2.errors.ErrorCodes.CANCEL)


@pytest.mark.conformance("T-05")
async def test_a_suspend_refuses_new_tunnels_and_lets_running_ones_end(
    worker: Worker, router: RouterPeer, echo_actor: str
) -> None:
    running = await router.open(echo_actor)
    ending = asyncio.create_task(worker.deactivate("echo", grace=60.0))
    await eventually(lambda: not worker.actor("echo")["open"])
    refused = await router.request(echo_actor)
    assert (refused.status, refused.get(STALE)) == (421, "true")
    # The running one still works, and its own end is a clean one.
    await router.send(running, b"still here", end=True)
    assert await router.receive(running, 10) == b"still here"
    await router.ended(running)
    assert await within(ending, 30) is True


@pytest.mark.conformance("T-05")
async def test_what_outlasts_the_grace_is_reset_on_both_sides(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, serve: Serve
) -> None:
    actor_saw: asyncio.Future[Exception | bytes] = asyncio.get_running_loop().create_future()

    async def wait_for_more(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"begun")
        try:
            actor_saw.set_result(await reader.read())
        except ConnectionError as error:
            actor_saw.set_result(error)
        finally:
            writer.close()

    await serve(shared_network.listen(80), wait_for_more)
    worker.activate("slow", shared_network)
    tunnel = await router.open("team/slow")
    assert await router.receive(tunnel, 5) == b"begun"
    start = time.monotonic()
    assert await worker.deactivate("slow", grace=0.3) is True
    assert time.monotonic() - start >= 0.3
    assert worker.stats()["actors"] == []
    assert await router.was_reset(tunnel) == CANCEL
    assert isinstance(await within(actor_saw, 10), ConnectionResetError)


@pytest.mark.conformance("T-05")
async def test_an_http1_tunnel_is_reset_too(
    worker: Worker, shared_network: ActorNetwork, serve: Serve, echo_actor: str
) -> None:
    async with http1_peer(worker.address, worker.pki) as wire:
        await wire.send(connect_head(echo_actor, "x:80") + b"ping")
        assert (await wire.head()).status == 200
        assert await wire.reader.readexactly(4) == b"ping"
        assert await worker.deactivate("echo") is True
        with pytest.raises(ConnectionResetError):
            await within(wire.reader.read(1), 10)


@pytest.mark.conformance("T-05")
async def test_a_dial_that_ends_too_late_is_no_tunnel(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork
) -> None:
    worker.activate("void", shared_network)
    with shared_network.silent(83):
        asked = asyncio.create_task(router.request("team/void", 83))
        await eventually(lambda: worker.actor("void")["tunnels"] > 0)
        start = time.monotonic()
        assert await worker.deactivate("void", grace=60.0) is True
        assert time.monotonic() - start < 30, "it waited for the dial"
        answer = await asked
    assert (answer.status, answer.get(STALE)) == (421, "true")


@pytest.mark.conformance("T-05")
async def test_the_next_activation_gets_connections_of_its_own(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, serve: Serve
) -> None:
    accepted = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await echo(reader, writer)

    await serve(shared_network.listen(80), count)
    for round_ in range(1, 21):
        worker.activate("again", shared_network, uid=str(round_))
        tunnel = await router.open("team/again", early=b"x")
        assert await router.receive(tunnel, 1) == b"x"
        assert await worker.deactivate("again", uid=str(round_)) is True
        assert await router.was_reset(tunnel) == CANCEL
        assert accepted == round_


@pytest.mark.conformance("T-06")
async def test_a_late_teardown_leaves_the_newer_incarnation_alone(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, echo_actor: str
) -> None:
    worker.activate("echo", shared_network, uid="2")
    tunnel = await router.open(echo_actor)
    assert await worker.deactivate("echo", uid="1") is False
    await router.send(tunnel, b"alive")
    assert await router.receive(tunnel, 5) == b"alive"
    assert await worker.deactivate("echo", uid="2") is True
    assert (await router.request(echo_actor)).status == 421
    assert await worker.deactivate("echo", uid="2") is False


@pytest.mark.conformance("T-06")
async def test_a_newer_incarnation_resets_the_older_ones_tunnels(
    worker: Worker, router: RouterPeer, echo_actor: str
) -> None:
    older = await router.open(echo_actor)
    worker.activate("echo", worker.network(), uid="2")
    assert await router.was_reset(older) == CANCEL
    # The older one's listener is still there; the name now means the newer network, where nobody listens.
    assert (await router.request(echo_actor)).status == 502


@pytest.mark.conformance("T-06")
async def test_the_same_incarnation_again_disturbs_nothing(
    worker: Worker, router: RouterPeer, shared_network: ActorNetwork, echo_actor: str
) -> None:
    tunnel = await router.open(echo_actor)
    worker.activate("echo", shared_network)
    await router.send(tunnel, b"same")
    assert await router.receive(tunnel, 4) == b"same"


@pytest.mark.conformance("T-06")
async def test_actors_with_equal_addresses_do_not_see_each_other(
    worker: Worker, router: RouterPeer, serve: Serve
) -> None:
    names = ["alpha", "beta", "gamma"]
    for name in names:
        network = worker.network()

        async def say_name(
            _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = name
        ) -> None:
            writer.write(name.encode())
            writer.close()

        await serve(network.listen(80), say_name)
        worker.activate(name, network)
    for name in [*names, *reversed(names)]:
        tunnel = await router.open(f"team/{name}")
        await router.ended(tunnel)
        assert bytes(tunnel.data) == name.encode()


@pytest.mark.conformance("T-06")
async def test_a_namespace_path_used_again_does_not_misdirect(
    worker: Worker, router: RouterPeer, serve: Serve, tmp_path: Path
) -> None:
    first, second = worker.network(), worker.network()
    path = tmp_path / "netns"
    path.symlink_to(first.netns)
    await serve(first.listen(80), echo)
    worker.tunnel.activate("team", "a", "1", netns=str(path), address=ACTOR)
    path.unlink()
    path.symlink_to(second.netns)
    tunnel = await router.open("team/a", early=b"first")
    assert await router.receive(tunnel, 5) == b"first"


def _networks_of_threads() -> set[Path]:
    return {(thread / "ns/net").readlink() for thread in Path("/proc/self/task").iterdir()}


@pytest.mark.conformance("T-06")
async def test_dialling_leaves_the_process_in_its_own_network(
    worker: Worker, router: RouterPeer, echo_actor: str
) -> None:
    own = _networks_of_threads()
    assert len(own) == 1
    for _ in range(20):
        await router.open(echo_actor)
    assert _networks_of_threads() == own


@pytest.mark.conformance("T-05")
async def test_the_numbers_tell_what_runs_and_since_when(
    worker: Worker, router: RouterPeer, echo_actor: str
) -> None:
    tunnel = await router.open(echo_actor, early=b"12345")
    await router.receive(tunnel, 5)
    await router.request("team/nobody")
    stats = worker.stats()
    assert stats["connections"] == {"open": 1, "total": 1, "handshakes_failed": 0}
    assert (stats["tunnels"]["open"], stats["tunnels"]["total"]) == (1, 1)
    assert stats["tunnels"]["declined"]["stale"] == 1
    actor = worker.actor("echo")
    assert (actor["atespace"], actor["uid"], actor["open"]) == ("team", "1", True)
    assert (actor["tunnels"], actor["bytes_to_actor"]) == (1, 5)
    # What is not HTTP counts as use while the tunnel lives; then the actor is idle.
    assert (actor["in_flight"], actor["idle_ms"]) == (1, 0)
    await router.send(tunnel, b"", end=True)
    await router.ended(tunnel)
    await eventually(lambda: worker.actor("echo")["in_flight"] == 0)
    await eventually(lambda: worker.actor("echo")["idle_ms"] > 0)


@pytest.mark.conformance("T-05")
async def test_closing_lets_tunnels_end_and_then_resets_them(
    worker: Worker, router: RouterPeer, echo_actor: str
) -> None:
    ends, stays = await router.open(echo_actor), await router.open(echo_actor)
    closing = asyncio.create_task(asyncio.to_thread(worker.tunnel.close, 0.5))
    await router.h2.wait(lambda: router.h2.goaway is not None)
    await router.send(ends, b"bye", end=True)
    assert await router.receive(ends, 3) == b"bye"
    await router.ended(ends)
    assert await router.was_reset(stays) == CANCEL
    await within(closing, 30)
    host, port = worker.address.split(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
