import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from atenet._engine import socket_in_netns
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.network import NetworkPair
from atenet.worker.probe import NotReadyError, Probe, plan_probes, wait_ready
from atenet.worker.sandbox import InvalidTemplateError

from tests.support.actor_box import ActorBox, python


def template(**probe: object) -> pb.ActorTemplate:
    container = pb.Container(name="main", command=["x"])
    if probe:
        container.wakeup_probe.CopyFrom(pb.WakeupProbe(**probe))  # type: ignore[arg-type]
    return pb.ActorTemplate(containers=[container])


def test_without_any_probe_port_80_is_asked_but_not_required() -> None:
    (probe,) = plan_probes(template())
    assert (probe.port, probe.path, probe.required) == (80, None, False)


def test_a_path_gets_its_slash() -> None:
    (probe,) = plan_probes(
        template(http_get=pb.HTTPGet(path="ready", port=8080), timeout_seconds=3)
    )
    assert probe == Probe("main", 8080, "/ready", 3.0)


@pytest.mark.parametrize(
    ("probe", "named"),
    [
        ({"timeout_seconds": 1}, "needs exactly one of http_get and tcp_port"),
        (
            {"tcp_port": 80, "http_get": pb.HTTPGet(path="/", port=80), "timeout_seconds": 1},
            "exactly one",
        ),
        ({"tcp_port": 80}, "timeout_seconds must be above 0"),
        ({"tcp_port": 65536, "timeout_seconds": 1}, "tcp_port 65536"),
        ({"http_get": pb.HTTPGet(path="/", port=0), "timeout_seconds": 1}, "http_get.port 0"),
        ({"http_get": pb.HTTPGet(path="", port=1), "timeout_seconds": 1}, "http_get.path ''"),
        ({"http_get": pb.HTTPGet(path="/a b", port=1), "timeout_seconds": 1}, "http_get.path"),
        ({"http_get": pb.HTTPGet(path="/\r\nX: y", port=1), "timeout_seconds": 1}, "http_get.path"),
    ],
)
def test_a_wrong_probe_is_named(probe: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidTemplateError, match="wakeup_probe") as caught:
        plan_probes(template(**probe))
    assert named in caught.value.message


# Serves one scripted answer per connection; the last one again and again.
SCRIPTED = """
import socket, sys, time
time.sleep(float(sys.argv[1]))
server = socket.create_server(("", 80))
answers = sys.argv[2:]
while True:
    c, _ = server.accept()
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    if answer == "hang":
        time.sleep(1)
    elif answer != "close":
        c.recv(4096)
        c.sendall(f"HTTP/1.1 {answer}\\r\\ncontent-length: 0\\r\\n\\r\\n".encode())
    c.close()
"""


@asynccontextmanager
async def actor(box: ActorBox, *answers: str, after: float = 0) -> AsyncIterator[NetworkPair]:
    network = await box.networks.acquire()
    launch = box.launch(*python(SCRIPTED), str(after), *answers, network=network)
    group = await box.sandbox.start(launch)
    try:
        yield network
    finally:
        await group.stop(0)
        await box.networks.release(network)


async def wait(probe: Probe, network: NetworkPair) -> None:
    await wait_ready([probe], network.gateway_path, socket_in_netns)


def http(seconds: float = 20) -> Probe:
    return Probe("main", 80, "/", seconds)


@pytest.mark.conformance("T-04")
@pytest.mark.parametrize(
    "answers",
    [
        ["200 OK"],
        ["503 Not Yet", "404 Not Found", "200 OK"],
        ["301 Elsewhere", "204 Nothing", "200 OK"],
        ["close", "200 OK"],
        ["hang", "200 OK"],
    ],
)
async def test_ready_is_exactly_200(box: ActorBox, answers: list[str]) -> None:
    async with actor(box, *answers) as network:
        await wait(http(), network)


@pytest.mark.conformance("T-04")
@pytest.mark.parametrize("answer", ["201 Created", "204 No Content", "302 Found", "500 No"])
async def test_any_other_status_is_not_ready(box: ActorBox, answer: str) -> None:
    async with actor(box, answer) as network:
        await wait(Probe("main", 80, None, 20), network)
        with pytest.raises(NotReadyError, match=f"status {answer[:3]}"):
            await wait(http(0.3), network)


async def test_a_port_is_ready_when_it_accepts(box: ActorBox) -> None:
    async with actor(box, "close", after=0.2) as network:
        await wait(Probe("main", 80, None, 20), network)


async def test_what_never_comes_is_named_with_the_reason(box: ActorBox) -> None:
    async with actor(box, "200 OK") as network:
        with pytest.raises(NotReadyError) as caught:
            await wait(Probe("main", 81, None, 0.2), network)
    assert "container 'main' was not ready in 0.2 s" in caught.value.message
    assert "port 81: Connection refused" in caught.value.message


async def test_an_unprobed_actor_that_does_not_listen_is_just_running(box: ActorBox) -> None:
    async with actor(box, "200 OK") as network:
        await wait(Probe("", 81, None, 0.2, required=False), network)


async def test_the_first_probe_that_fails_ends_the_others(box: ActorBox) -> None:
    async with actor(box, "200 OK") as network:
        began = time.monotonic()
        with pytest.raises(NotReadyError, match="container 'one'"):
            await wait_ready(
                [Probe("one", 81, None, 0.1), Probe("two", 82, None, 60)],
                network.gateway_path,
                socket_in_netns,
            )
        assert time.monotonic() - began < 30


async def test_no_socket_stays_open(box: ActorBox) -> None:
    async with actor(box, "503 No") as network:
        await wait(Probe("main", 80, None, 20), network)
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(NotReadyError):
            await wait(http(0.3), network)
        await asyncio.sleep(0)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
