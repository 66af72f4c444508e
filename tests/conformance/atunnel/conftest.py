"""A real atunnel, real TLS, and actors in network namespaces of their own."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from atenet import _engine

from tests.support.actor_network import ACTOR, ActorNetwork, actor_network
from tests.support.pki import ROUTER_ID, Pki
from tests.support.router_peer import RouterPeer, router_peer

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for the session, as session-wide fixtures need it."""
    for item in items:
        if pytest_asyncio.is_async_test(item) and item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def pki(root: None, tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Worker:
    """One atunnel and the networks of its actors."""

    def __init__(self, pki: Pki, stack: ExitStack, **settings: object) -> None:
        self.pki = pki
        self._stack = stack
        credential = str(pki.worker)
        config = {
            "listen": "127.0.0.1:0",
            "credentials": {"cert": credential, "key": credential},
            "trust_bundle": str(pki.pod_roots),
            "allowed_client": ROUTER_ID,
            **settings,
        }
        self.tunnel = _engine.Tunnel(json.dumps(config))
        self.address = self.tunnel.start()
        stack.callback(self.tunnel.close, 0.0)

    def network(self) -> ActorNetwork:
        """A network of an actor's own, for as long as the test runs."""
        return self._stack.enter_context(actor_network())

    def activate(self, name: str, network: ActorNetwork, uid: str = "1") -> None:
        self.tunnel.activate("team", name, uid, netns=network.netns, address=ACTOR)

    async def deactivate(self, name: str, uid: str = "1", *, grace: float = 0.0) -> bool:
        call = self.tunnel.deactivate
        return await asyncio.to_thread(call, "team", name, uid, grace_seconds=grace)

    def stats(self) -> dict[str, Any]:
        counted: dict[str, Any] = json.loads(self.tunnel.stats())
        return counted

    def actor(self, name: str) -> dict[str, Any]:
        """One actor's numbers."""
        [found] = [actor for actor in self.stats()["actors"] if actor["name"] == name]
        return dict(found)


@pytest.fixture(scope="session")
def shared_network(root: None) -> Iterator[ActorNetwork]:
    """One network for the tests that do not care which."""
    with actor_network() as network:
        yield network


WorkerMaker = Callable[..., Worker]


@pytest.fixture
def make_worker(pki: Pki) -> Iterator[WorkerMaker]:
    with ExitStack() as stack:
        yield lambda **settings: Worker(settings.pop("pki", pki), stack, **settings)


@pytest.fixture
def worker(make_worker: WorkerMaker) -> Worker:
    return make_worker()


@pytest.fixture
def own_pki(tmp_path: Path) -> Pki:
    """Certificates that a test may replace."""
    return Pki(tmp_path)


@pytest_asyncio.fixture(loop_scope="session")
async def router(worker: Worker) -> AsyncIterator[RouterPeer]:
    async with router_peer(worker.address, worker.pki) as peer:
        yield peer


Serve = Callable[[socket.socket, Handler], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def serve() -> AsyncIterator[Serve]:
    """Serves a listening socket with a handler until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(listener: socket.socket, handler: Handler) -> None:
            server = await asyncio.start_server(handler, sock=listener)
            stack.callback(server.close)

        yield start


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what comes; ends when the other side does."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def echo_actor(worker: Worker, shared_network: ActorNetwork, serve: Serve) -> str:
    """An active actor that echoes on port 80."""
    await serve(shared_network.listen(80), echo)
    worker.activate("echo", shared_network)
    return "team/echo"


async def eventually(condition: Callable[[], bool], limit: float = 20.0) -> None:
    """Waits until the condition holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110 - what is waited for lives outside the loop
            await asyncio.sleep(0.005)
