"""Ingress of a real worker as the router meets it: when it opens, when it closes, and for whom."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.ingress import tunnel_config

from tests.support.actor_box import HTTP_ACTOR, http_probe, kill_actor, python, template
from tests.support.eventually import eventually, within
from tests.support.node import Node, node
from tests.support.raw_h2 import StreamResetError
from tests.support.router_end import RouterEnd

# An actor's account follows from its uid: no other run on this machine has the same one.
UID = str(uuid4())
OTHER = str(uuid4())
# Listens at once, but is ready only when /data/go exists.
SLOWLY_READY = "import os\n" + HTTP_ACTOR.replace(
    "self.send_response(200)",
    "self.send_response(200 if os.path.exists('/data/go') else 503)",
)

# Answers a request only when /data/go exists.
SLOW = "import os, time\n" + HTTP_ACTOR.replace(
    "        self.send_response(200)",
    "        open('/data/asked', 'w').close()\n"
    "        while not os.path.exists('/data/go'): time.sleep(0.01)\n"
    "        self.send_response(200)",
    1,
)
AT_PORT_80 = {"tcp_port": 80, "timeout_seconds": 20}


@pytest.fixture
async def here(root: None, tmp_path: Path) -> AsyncIterator[Node]:
    async with node(tmp_path) as made:
        await made.start_worker("worker-1")
        yield made


@pytest.fixture
async def router(here: Node) -> AsyncIterator[RouterEnd]:
    end = await RouterEnd.connect(here.identity, here.workers["worker-1"].addresses["atunnel"])
    yield end
    await end.close()


@pytest.mark.conformance("T-04")
async def test_no_request_reaches_an_actor_that_is_not_ready(here: Node, router: RouterEnd) -> None:
    """Its port accepts all the time; its probe does not say 200 yet."""
    handle = here.handle("worker-1", UID)
    slow = template(*python(SLOWLY_READY), probe=http_probe(seconds=60))
    starting = asyncio.ensure_future(here.run(handle, slow))
    await here.gateway("worker-1")
    refused = await router.tunnel("team/agent")
    assert (refused.status, refused.get("x-ate-assignment-stale")) == (421, "true")
    (here.volume(UID) / "go").touch()
    await starting
    opened = await router.tunnel("team/agent")
    assert opened.status == 200
    assert await router.get(opened) == b"hello"


@pytest.mark.conformance("T-05")
async def test_a_suspend_refuses_new_tunnels_and_lets_a_running_request_end(here: Node) -> None:
    worker = await here.start_worker("patient", "--suspend-grace", "30s")
    router = await RouterEnd.connect(here.identity, worker.addresses["atunnel"])
    answer, storing = await suspended_meanwhile(here, router, "patient")
    (here.volume(UID) / "go").touch()
    assert await answer == b"hello"
    # Tunnels on which nothing is asked would have the grace too: the router lets go of its own.
    await router.close()
    assert await storing is False


@pytest.mark.conformance("T-05")
async def test_a_request_that_outlives_the_grace_is_reset(here: Node, router: RouterEnd) -> None:
    """Never a clean end, which would pass for a whole answer."""
    answer, storing = await suspended_meanwhile(here, router, "worker-1")
    with pytest.raises(StreamResetError):
        await answer
    assert await storing is False


async def suspended_meanwhile(
    here: Node, router: RouterEnd, worker: str
) -> tuple[asyncio.Task[bytes], asyncio.Task[bool]]:
    """A request that waits for /data/go, and a suspend that began after it."""
    handle = here.handle(worker, UID)
    await here.run(handle, template(*python(SLOW), probe=pb.WakeupProbe(**AT_PORT_80)))
    answer = asyncio.create_task(router.get(await router.tunnel("team/agent")))
    await eventually((here.volume(UID) / "asked").exists)
    storing = asyncio.create_task(here.checkpoint(handle, here.uri(UID)))

    async def is_refused() -> bool:
        return (await router.tunnel("team/agent")).status == 421

    await eventually(is_refused)
    return answer, storing


@pytest.mark.conformance("T-05")
async def test_no_connection_crosses_an_activation(here: Node, router: RouterEnd) -> None:
    """Suspend one actor, start another in its place: the first one's tunnel leads nowhere."""
    first = here.handle("worker-1", UID, "first")
    second = here.handle("worker-1", OTHER, "second")
    await here.run(first, template(probe=http_probe()))
    kept = await router.tunnel("team/first")
    assert await router.get(kept) == b"hello"
    uri = here.uri(UID)
    await here.checkpoint(first, uri)
    await here.run(second, template(probe=http_probe()))
    assert (await router.over(kept)).reset is not None
    assert (await router.tunnel("team/first")).status == 421
    for _ in range(2):
        # The same snapshot twice: nothing waits for a connection of the life before.
        await here.restore(first, template(probe=http_probe()), uri)
        opened = await router.tunnel("team/first")
        assert await within(router.get(opened), 5) == b"hello"
        await here.terminate(first)


@pytest.mark.conformance("T-06")
async def test_each_actor_of_a_worker_is_reached_by_its_own_name(
    here: Node, router: RouterEnd
) -> None:
    for uid, name in ((UID, "one"), (OTHER, "other")):
        source = HTTP_ACTOR.replace('b"hello"', f'b"{name}"')
        await here.run(
            here.handle("worker-1", uid, name), template(*python(source), probe=http_probe())
        )
    for name in ("one", "other"):
        assert await router.get(await router.tunnel(f"team/{name}")) == name.encode()
    assert (await router.tunnel("team/third")).status == 421
    assert (await router.tunnel("elsewhere/one")).status == 421


@pytest.mark.conformance("T-06")
async def test_a_late_teardown_does_not_close_a_newer_incarnation(
    here: Node, router: RouterEnd
) -> None:
    """Deleted and made again under the same name, on the same worker."""
    old, new = here.handle("worker-1", UID), here.handle("worker-1", OTHER)
    await here.run(old, template(probe=http_probe()))
    source = HTTP_ACTOR.replace('b"hello"', 'b"the new one"')
    await here.run(new, template(*python(source), probe=http_probe()))
    await here.terminate(old)
    assert await router.get(await router.tunnel("team/agent")) == b"the new one"


async def test_an_actor_that_died_is_no_longer_let_to(here: Node, router: RouterEnd) -> None:
    await here.run(here.handle("worker-1", UID), template(probe=http_probe()))
    kept = await router.tunnel("team/agent")
    kill_actor(UID)
    await router.over(kept)

    async def is_refused() -> bool:
        return (await router.tunnel("team/agent")).status == 421

    await eventually(is_refused)


def test_the_tunnels_configuration_names_its_files(tmp_path: Path) -> None:
    made = json.loads(tunnel_config("127.0.0.1:1", tmp_path / "pod.pem", tmp_path / "trust.pem"))
    assert made["credentials"] == {"cert": f"{tmp_path}/pod.pem", "key": f"{tmp_path}/pod.pem"}
    assert made["trust_bundle"] == f"{tmp_path}/trust.pem"
    assert made["allowed_client"] == "spiffe://cluster.local/ns/ate-system/sa/atenet-router"
