"""Two replicas of a router, one rolled away under load: pods as processes, with the manifest's flags and hooks."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from atenet.identity import pem, spiffe

from tests.support.addresses import loopback_address
from tests.support.eventually import eventually
from tests.support.fake_ateapi import FakeAteapi
from tests.support.kube_files import KubeFiles
from tests.support.kube_pod import KubePod, running
from tests.support.kube_service import KubeService, kube_service
from tests.support.resume_steps import Placement
from tests.support.worker_end import WorkerEnd
from tests.unit.setup.rendered import CLIENT, config, named, of_kind, rendered

ACTOR = "team/agent"
# What a cluster takes to tell its nodes, and the delay that covers it: 13 s in the manifest.
LATE, DRAIN_DELAY = 0.8, "2s"
_numbers = itertools.count(1)


@pytest.fixture
def files(tmp_path: Path, root: None) -> KubeFiles:
    # Pods' accounts are others than this one, and come by here.
    for each in (tmp_path, *list(tmp_path.parents)[:2]):
        each.chmod(0o755)
    return KubeFiles(tmp_path / "files")


@dataclass
class Replicas:
    """Routers of one Deployment, joined to this machine by a link each."""

    dataplane: str
    directory: Path
    files: KubeFiles
    api: str  # address of the control plane, on this machine
    stack: AsyncExitStack
    _volumes: dict[str, Path] = field(default_factory=dict)

    async def start(self, name: str) -> KubePod:
        objects = rendered(config(self.dataplane, drainDelay=DRAIN_DELAY))
        maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
        maps["ate-trust"] = {}
        spec = named(objects, "Deployment", "atenet-router")["spec"]["template"]["spec"]
        hosts = {"api.ate-system.svc": self.api}
        self._volumes = self._volumes or self.files.volumes(spec, maps)
        pod = await self.stack.enter_async_context(
            running(spec, self._volumes, self.directory / name, hosts)
        )
        await _join(pod, self.api)
        return pod


async def _join(pod: KubePod, here: str) -> None:
    """A link of its own, which goes with the pod."""
    number = next(_numbers)
    near, far = f"k{os.getpid() % 100000}n{number}", f"k{os.getpid() % 100000}f{number}"
    subnet = f"10.213.{os.getpid() % 250}"
    ours, theirs = f"{subnet}.{4 * number + 1}/30", f"{subnet}.{4 * number + 2}/30"
    inside = ["nsenter", f"--net={pod.netns}", "ip"]
    commands = [
        ["ip", "link", "add", near, "type", "veth", "peer", "name", far],
        ["ip", "link", "set", far, "netns", pod.netns.split("/")[2]],
        ["ip", "addr", "add", ours, "dev", near],
        ["ip", "link", "set", near, "up"],
        [*inside, "addr", "add", theirs, "dev", far],
        [*inside, "link", "set", far, "up"],
        [*inside, "route", "add", "default", "via", ours.partition("/")[0]],
    ]
    for command in commands:
        process = await asyncio.create_subprocess_exec(*command)
        assert await process.wait() == 0, command


@asynccontextmanager
async def address() -> AsyncIterator[str]:
    """One of this machine's own, that pods reach."""
    link, found = f"k{os.getpid() % 100000}here", f"10.214.{os.getpid() % 250}.1"

    async def ip(*words: str) -> None:
        process = await asyncio.create_subprocess_exec("ip", *words)
        assert await process.wait() == 0, words

    await ip("link", "add", link, "type", "veth")
    try:
        await ip("addr", "add", f"{found}/32", "dev", link)
        await ip("link", "set", link, "up")
        yield found
    finally:
        await ip("link", "del", link)


@dataclass
class Load:
    """Clients that ask one after the other, on connections that are kept for some requests."""

    service: KubeService
    context: ssl.SSLContext
    good: int = 0
    failures: list[str] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Load:
        self._tasks = [asyncio.create_task(self._client()) for _ in range(6)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def more(self, count: int) -> None:
        """Until so many more were answered, or one was not."""
        wanted = self.good + count
        await eventually(lambda: self.good >= wanted or bool(self.failures), 60)

    async def _client(self) -> None:
        while True:
            try:
                await self._connection()
            except (OSError, AssertionError, asyncio.IncompleteReadError) as error:
                self.failures.append(repr(error))
                await asyncio.sleep(0.05)

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_connection(
            *self.service.address, ssl=self.context, server_hostname=spiffe.ROUTER_SERVER_NAME
        )
        with contextlib.closing(writer):
            for _ in range(5):
                if not await self._request(reader, writer):
                    return

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False: the server said that the connection is over."""
        writer.write(f"GET / HTTP/1.1\r\nhost: a\r\nate-target-actor: {ACTOR}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert " 200 " in head.partition("\r\n")[0], head
        (length,) = [
            line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-len")
        ]
        assert await reader.readexactly(int(length)) == b"hello"
        self.good += 1
        return "connection: close" not in head


async def _actor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes a moment for each answer, so that there is always one on the way."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.02)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def _pki(files: KubeFiles, directory: Path) -> Any:
    """What the control plane and the worker of this test show and trust."""
    worker = spiffe.pod_id("default", "local")
    roots = pem.certificate_pem(files.authorities["pod-identity"].certificate)
    return SimpleNamespace(
        api=_written(
            directory / "api.pem", files.bundle("service-dns", dns=(spiffe.API_SERVER_NAME,))
        ),
        worker=_written(directory / "worker.pem", files.bundle("pod-identity", uri=worker)),
        pods=SimpleNamespace(pem=roots),
        pod_roots=_written(directory / "roots.pem", roots),
    )


def _client(files: KubeFiles, directory: Path) -> ssl.SSLContext:
    roots = pem.certificate_pem(files.authorities["service-dns"].certificate).decode()
    context = ssl.create_default_context(cadata=roots)
    shown = files.bundle("pod-identity", uri=CLIENT)
    context.load_cert_chain(_written(directory / "client.pem", shown))
    return context


# A minute by itself, and more on a machine that does other things as well.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
async def test_a_replica_is_rolled_away_under_load_and_no_request_fails(
    dataplane: str, tmp_path: Path, files: KubeFiles
) -> None:
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(address())
        pki = _pki(files, tmp_path / "pki")
        api = await FakeAteapi(pki).start(f"{here}:443")
        stack.push_async_callback(api.close)
        worker = await WorkerEnd.start(pki, ip=here)
        stack.push_async_callback(worker.close)
        host = loopback_address()
        actor = await asyncio.start_server(_actor, host, 80)
        stack.callback(actor.close)
        opened = worker.activate(ACTOR, host)
        api.place(Placement(ACTOR, here, uid=opened.uid))

        replicas = Replicas(dataplane, tmp_path, files, here, stack)
        service = await stack.enter_async_context(kube_service(8443, late=LATE))
        first, second = await replicas.start("a"), await replicas.start("b")
        service.add(first)
        service.add(second)
        async with Load(service, _client(files, tmp_path / "pki")) as load:
            await load.more(100)
            third = await replicas.start("c")  # as a rolling update does: one more, then one less
            service.add(third)
            before = service.connections_of(first)
            leaving = asyncio.create_task(first.terminate())
            while service.has(first):
                await load.more(10)
                assert not load.failures, load.failures[:3]
            assert service.connections_of(first) > before, "nothing came during the delay"
            codes = await leaving
            await load.more(100)
        assert not load.failures, load.failures[:3]
        assert set(codes.values()) == {0}
        assert service.connections_of(third) > 0
