"""Real activations for tests of the worker: namespaces, sandboxes and what runs in them."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from atenet._engine import socket_in_netns
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.ingress import Incarnation
from atenet.worker.network import ACTOR_ADDRESS, NetworkPair, PairPool, clear_leftovers, netns
from atenet.worker.sandbox import (
    Bind,
    Cgroups,
    ContainerPlan,
    Exit,
    Freezer,
    Launch,
    Limits,
    ProcessSandbox,
    Sandbox,
    account_of,
)

from tests.support.eventually import within

# An actor that listens on port 80 and answers everything with 200 and the body of /data/greeting.
HTTP_ACTOR = """
import http.server, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        greeting = pathlib.Path("/data/greeting")
        body = greeting.read_bytes() if greeting.exists() else b"hello"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        pathlib.Path("/data/greeting").write_bytes(body)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
"""


def new_prefix() -> str:
    """A namespace prefix that no other run uses."""
    return f"t{secrets.token_hex(4)}-"


def python(source: str) -> list[str]:
    return ["/usr/bin/python3", "-c", source]


def template(
    *command: str,
    probe: pb.WakeupProbe | None = None,
    data: bool = True,
    resources: pb.Resources | None = None,
) -> pb.ActorTemplate:
    """One container `main` with a durable directory at /data."""
    container = pb.Container(name="main", command=command or python(HTTP_ACTOR))
    made = pb.ActorTemplate(containers=[container], resources=resources)
    if probe is not None:
        made.containers[0].wakeup_probe.CopyFrom(probe)
    if data:
        made.volumes.add(name="data").durable_dir.SetInParent()
        made.containers[0].mounts.add(volume="data", path="/data")
    return made


def http_probe(path: str = "/", port: int = 80, seconds: int = 20) -> pb.WakeupProbe:
    return pb.WakeupProbe(http_get=pb.HTTPGet(path=path, port=port), timeout_seconds=seconds)


def actor_directory(root: Path, uid: str, *volumes: str) -> Path:
    """As the node agent prepares it."""
    for name in volumes or ("data",):
        (root / uid / "volumes" / name).mkdir(parents=True, exist_ok=True)
    (root / uid / "logs").mkdir(exist_ok=True)
    return root / uid


def new_incarnation(name: str = "agent") -> Incarnation:
    return Incarnation("team", name, f"uid-{secrets.token_hex(6)}")


async def ask(gateway: Path, data: bytes = b"", port: int = 80) -> bytes:
    """What the actor answers to `data` on a connection from the gateway namespace."""
    loop = asyncio.get_running_loop()
    with socket.socket(fileno=socket_in_netns(str(gateway))) as connection:
        await loop.sock_connect(connection, (ACTOR_ADDRESS, port))
        await loop.sock_sendall(connection, data)
        answer = b""
        while piece := await loop.sock_recv(connection, 65536):
            answer += piece
        return answer


GET = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


def put(body: bytes) -> bytes:
    """A request that makes HTTP_ACTOR remember `body`."""
    head = f"PUT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def processes_of(uid: str) -> list[int]:
    """The actor's living processes, found by their account alone."""
    account = account_of(uid)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError):
                if entry.stat().st_uid == account:
                    found.append(int(entry.name))
    return found


def kill_actor(uid: str) -> None:
    """As a crash would."""
    for pid in processes_of(uid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass
class ActorBox:
    """Sandboxes started through it end with the test; `where` is for what they leave."""

    prefix: str
    where: Path
    threads: ThreadPoolExecutor
    networks: PairPool
    sandbox: Sandbox
    groups: list[object] = field(default_factory=list)

    async def run(
        self,
        *command: str,
        uid: str | None = None,
        name: str = "agent",
        env: dict[str, str] | None = None,
        binds: tuple[Bind, ...] = (),
        limits: Limits | None = None,
        network: NetworkPair | None = None,
    ) -> tuple[Exit, str]:
        """Runs the command to its end: how it ended, and all that it wrote."""
        uid = uid or f"uid-{secrets.token_hex(6)}"
        own = network is None
        network = network or await self.networks.acquire()
        launch = self.launch(
            *command, uid=uid, name=name, env=env, binds=binds, limits=limits, network=network
        )
        log = launch.logs / "main.log"
        before = log.stat().st_size if log.exists() else 0
        group = await self.sandbox.start(launch)
        try:
            ended = await within(asyncio.shield(group.exited), 30)
        finally:
            await group.stop(0)
            if own:
                await self.networks.release(network)
        return ended, log.read_text()[before:]

    def launch(
        self,
        *command: str,
        network: NetworkPair,
        uid: str = "uid-1",
        name: str = "agent",
        env: dict[str, str] | None = None,
        binds: tuple[Bind, ...] = (),
        limits: Limits | None = None,
        facts: dict[str, str] | None = None,
        memory: Path | None = None,
    ) -> Launch:
        directory = actor_directory(self.where, uid)
        data = directory / "volumes" / "data"
        plan = ContainerPlan(
            name="main",
            command=command,
            environment={"PATH": "/usr/bin:/bin", **(env or {})},
            working_dir="/data",
            binds=(Bind(data, "/data", read_only=False), *binds),
        )
        return Launch(
            actor_name=name,
            actor_uid=uid,
            containers=(plan,),
            network=network,
            limits=limits or Limits(),
            durable=(data,),
            logs=directory / "logs",
            facts=facts or {},
            memory=memory,
        )

    def data_of(self, uid: str) -> Path:
        return self.where / uid / "volumes" / "data"


def _process(scratch: Path, prefix: str, threads: ThreadPoolExecutor) -> Sandbox:
    return ProcessSandbox(scratch, Cgroups(prefix), threads, freezer=Freezer(prefix))


@asynccontextmanager
async def actor_box(
    where: Path, make: Callable[[Path, str, ThreadPoolExecutor], Sandbox] | None = None
) -> AsyncIterator[ActorBox]:
    """Fails when the test leaves a namespace or a process behind. `make`: another sandbox class."""
    prefix = new_prefix()
    threads = ThreadPoolExecutor(16)
    networks = PairPool(prefix, 0, threads)
    sandbox = (make or _process)(where / "scratch", prefix, threads)
    try:
        yield ActorBox(prefix, where / "actors", threads, networks, sandbox)
        await networks.close()
        left = netns.names(prefix)
        assert left == [], "namespaces left behind"
    finally:
        clear_leftovers(prefix)
        sandbox.clear()
        threads.shutdown()
        shutil.rmtree(where / "scratch", ignore_errors=True)
