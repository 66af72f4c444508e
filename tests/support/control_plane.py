"""A real control plane for tests: in this process or in one of its own, over mTLS."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import httpx
from atenet.address import Address
from atenet.ateapi.process import serving
from atenet.ateapi.settings import Settings
from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.rpc import MtlsChannel, mtls_channel

from tests.support.eventually import eventually, within
from tests.support.fake_atelet import FakeAtelet


@dataclass
class Defaults:
    """What a control plane of a test runs on unless the test says otherwise."""

    store: str = ""
    front: str = "off"


defaults = Defaults()


@dataclass
class ControlPlane:
    """Files, a scripted node agent, and one ateapi at a time with clients of every role."""

    root: Path
    identity: LocalIdentity
    atelet: FakeAtelet
    worker_timeout: float = 6.0
    node_timeout: float = 60.0
    drain_timeout: float = 20.0
    # The SQLite file below `root`, or a migrated store of either engine; see `on_each_store`.
    store: str = field(default_factory=lambda: defaults.store)
    front: str = field(default_factory=lambda: defaults.front)
    snapshots: Path | None = None
    store_lease: float = 1.0
    addresses: dict[str, str] = field(default_factory=dict)
    _channels: list[MtlsChannel] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None

    def replica(self, name: str) -> ControlPlane:
        """Another control plane on the same store, with the same node agent."""
        root = self.root / name
        root.mkdir()
        return dataclasses.replace(
            self,
            root=root,
            store=str(self.settings().store),
            snapshots=self.settings().snapshots,
            addresses={},
            _channels=[],
            _process=None,
        )

    def kill(self) -> None:
        """SIGKILL to its own process."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)

    # -- running it

    @contextlib.asynccontextmanager
    async def in_process(self, **changed: Any) -> AsyncIterator[ControlPlane]:
        async with serving(self.settings(**changed)) as self.addresses:
            try:
                yield self
            finally:
                await self.disconnect()

    @contextlib.asynccontextmanager
    async def in_its_own_process(
        self, *, stop_at: str | None = None
    ) -> AsyncIterator[ControlPlane]:
        """`stop_at`: see atenet.ateapi.workflows.stops."""
        ready = self.root / "ready.json"
        ready.unlink(missing_ok=True)
        env = dict(os.environ)
        env.pop("ATENET_STOP_AT", None)
        if stop_at:
            env["ATENET_STOP_AT"] = stop_at
        log = (self.root / "ateapi.log").open("ab")
        with log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command(ready), stderr=log, stdout=asyncio.subprocess.PIPE, env=env
            )
        try:
            await self._until_ready(ready)
            yield self
        finally:
            await self.disconnect()
            if self._process.returncode is None:
                self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

    async def _until_ready(self, ready: Path) -> None:
        assert self._process is not None
        async with asyncio.timeout(20):
            while (found := _read(ready)) is None:
                if self._process.returncode is not None:
                    raise AssertionError(self.log())
                await asyncio.sleep(0.02)
        self.addresses = json.loads(found)

    def log(self) -> str:
        """What its own processes wrote on stderr."""
        return _read(self.root / "ateapi.log") or ""

    async def killed(self) -> int:
        """Waits until the process has died by itself; its exit code (-9 for SIGKILL)."""
        assert self._process is not None
        return await within(self._process.wait(), 20)

    async def terminate(self) -> tuple[int, bytes]:
        """SIGTERM; the exit code and what was printed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        out, _ = await within(self._process.communicate(), 30)
        return self._process.returncode or 0, out

    def settings(self, **changed: Any) -> Settings:
        given: dict[str, Any] = {
            "listen": Address("127.0.0.1", 0),
            "store": self.store or str(self.root / "ate.db"),
            "front": self.front,
            "store_lease": self.store_lease,
            "snapshots": str(self.snapshots or self.root / "snapshots"),
            "server_credential": self.identity.service_credential(
                "ateapi", [spiffe.API_SERVER_NAME]
            ),
            "client_credential": self.identity.credential("ateapi", spiffe.API_ID),
            "client_roots": self.identity.trust("pod-identity"),
            "node_roots": self.identity.trust("pod-identity"),
            "worker_timeout": self.worker_timeout,
            "node_timeout": self.node_timeout,
            "drain_timeout": self.drain_timeout,
        }
        return Settings(**(given | changed))

    def command(self, ready: Path) -> list[str]:
        made = self.settings()
        flags = {
            "--listen": str(made.listen),
            "--store": made.store,
            "--snapshots": made.snapshots,
            "--server-credential": made.server_credential,
            "--client-credential": made.client_credential,
            "--client-roots": made.client_roots,
            "--node-roots": made.node_roots,
            "--worker-timeout": f"{made.worker_timeout}s",
            "--node-timeout": f"{made.node_timeout}s",
            "--front": made.front,
            "--store-lease": f"{made.store_lease}s",
            "--ready-file": ready,
        }
        words = [str(word) for pair in flags.items() for word in pair]
        program = "from atenet.ateapi.main import main; main(prog_name='ateapi')"
        return [sys.executable, "-c", program, "serve", *words]

    # -- talking to it

    def channel(self, component: str, spiffe_id: str, *, node: str | None = None) -> MtlsChannel:
        return self.channel_with(self.identity.credential(component, spiffe_id, node=node))

    def channel_with(self, credential: Path) -> MtlsChannel:
        """As whoever this credential proves."""
        made = mtls_channel(
            self.addresses["grpc"],
            credential=credential,
            roots=self.identity.trust("service-dns"),
            server_name=spiffe.API_SERVER_NAME,
        )
        self._channels.append(made)
        return made

    def control(self, spiffe_id: str = spiffe.CLI_ID) -> Any:
        component = spiffe_id.rpartition("/")[2]
        return pb_grpc.ControlStub(self.channel(component, spiffe_id))

    def worker_service(self, node: str = "node-1") -> Any:
        """As the agent of that node."""
        channel = self.channel(f"atelet-{node}", spiffe.ATELET_ID, node=node)
        return pb_grpc.WorkerServiceStub(channel)

    async def disconnect(self) -> None:
        for channel in self._channels:
            await channel.close()
        self._channels.clear()

    async def api_is_quiet(self) -> None:
        """Returns when no operation runs; what heartbeats before this call began has then ended."""

        async def quiet() -> bool:
            return await self.metric("ateapi_operations_running") == 0

        await eventually(quiet)

    async def metric(self, name: str, **labels: str) -> float:
        """One sample of /metrics; 0 if it is not there."""
        async with httpx.AsyncClient() as client:
            text = (await client.get(f"http://{self.addresses['stats']}/metrics")).text
        for line in text.splitlines():
            if line.startswith(name) and all(f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.rpartition(" ")[2])
        return 0.0

    # -- what there is

    async def seed(
        self, *actors: str, atespace: str = "team-a", memory: bool = False
    ) -> list[pb.Actor]:
        """The atespace, the template `tpl`, and these actors. `memory`: it keeps that."""
        control, tpl = self.control(), template(atespace)
        if memory:
            tpl.sandbox_config.sandbox_class = "gvisor"
            tpl.snapshot_config.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_FULL
        with contextlib.suppress(grpc.aio.AioRpcError):
            await control.CreateAtespace(
                pb.CreateAtespaceRequest(
                    atespace=pb.Atespace(metadata=pb.ResourceMetadata(name=atespace))
                )
            )
            await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=tpl))
        return [
            await control.CreateActor(pb.CreateActorRequest(actor=actor(name, atespace)))
            for name in actors
        ]

    async def register(self, name: str = "worker-1", **given: Any) -> pb.Worker:
        service = self.worker_service(given.get("node", "node-1"))
        return (await service.RegisterWorker(self.registration(name, **given))).worker

    def registration(
        self,
        name: str = "worker-1",
        *,
        slots: int = 4,
        epoch: int = 1,
        draining: bool = False,
        node: str = "node-1",
        busy: bool | None = None,
        idle_ms: int | None = None,
        resources: dict[str, int] | None = None,
        **labels: str,
    ) -> pb.RegisterWorkerRequest:
        """`busy`, `idle_ms`: what it says of every actor that it hosts; neither: nothing."""
        state = pb.WORKER_STATE_DRAINING if draining else pb.WORKER_STATE_ACTIVE
        return pb.RegisterWorkerRequest(
            worker=pb.Worker(
                metadata=pb.ResourceMetadata(name=name),
                worker_namespace="default",
                worker_pool="local",
                node_name=node,
                status=pb.WorkerStatus(state=state),
                ips=["127.1.0.1"],
                labels=labels,
                epoch=epoch,
                node_endpoint=self.atelet.address,
                sandbox_classes=["process", "gvisor"],
            ),
            capacity=pb.WorkerResources(actors=slots, resources=resources or {}),
            hosted_actor_uids=sorted(self.atelet.hosted[name]),
            activity=[
                pb.ActorActivity(actor_uid=uid, busy=bool(busy), idle_ms=idle_ms or 0)
                for uid in sorted(self.atelet.hosted[name] - self.atelet.frozen)
                if busy is not None or idle_ms is not None
            ],
            held_snapshots=[
                pb.HeldSnapshot(actor_uid=uid, snapshot_name=kept)
                for uid, kept in self.atelet.kept.items()
                if node == "node-1"  # where the scripted agent is
            ],
        )

    @contextlib.asynccontextmanager
    async def heartbeats(
        self, *names: str, every: float = 0.1, **given: Any
    ) -> AsyncIterator[None]:
        """These workers live while the block lasts."""
        service = self.worker_service(given.get("node", "node-1"))

        async def beat() -> None:
            while True:
                for name in names:
                    await service.RegisterWorker(self.registration(name, **given))
                await asyncio.sleep(every)

        task = asyncio.create_task(beat())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_registered(self, name: str) -> None:
        control = self.control()
        async with asyncio.timeout(10):
            while True:
                listed = (await control.ListWorkers(pb.ListWorkersRequest())).workers
                if name in {w.metadata.name for w in listed}:
                    return
                await asyncio.sleep(0.02)

    async def state(self, name: str, atespace: str = "team-a") -> str:
        return pb.ActorState.Name((await self.get(name, atespace)).status.state)[12:]

    async def get(self, name: str, atespace: str = "team-a") -> pb.Actor:
        return await self.control().GetActor(pb.GetActorRequest(actor=ref(name, atespace)))

    async def until(self, name: str, state: str, seconds: float = 10) -> pb.Actor:
        """Waits for the actor to reach the state."""
        control = self.control()
        async with asyncio.timeout(seconds):
            while True:
                found = await control.GetActor(pb.GetActorRequest(actor=ref(name)))
                if pb.ActorState.Name(found.status.state) == f"ACTOR_STATE_{state}":
                    return found
                await asyncio.sleep(0.02)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def ref(name: str, atespace: str = "team-a") -> pb.ObjectRef:
    return pb.ObjectRef(atespace=atespace, name=name)


def actor(name: str, atespace: str = "team-a", **selector: str) -> pb.Actor:
    made = pb.Actor(
        metadata=pb.ResourceMetadata(atespace=atespace, name=name),
        actor_template=pb.ObjectRef(atespace=atespace, name="tpl"),
    )
    if selector:
        made.worker_selector.match_labels.update(selector)
    return made


def template(atespace: str = "team-a", name: str = "tpl") -> pb.ActorTemplate:
    return pb.ActorTemplate(
        metadata=pb.ResourceMetadata(atespace=atespace, name=name),
        containers=[pb.Container(name="main", command=["/bin/sleep", "1000"])],
    )


def resume(name: str, atespace: str = "team-a") -> pb.ResumeActorRequest:
    return pb.ResumeActorRequest(actor=ref(name, atespace))


def suspend(name: str, atespace: str = "team-a") -> pb.SuspendActorRequest:
    return pb.SuspendActorRequest(actor=ref(name, atespace))


def pause(name: str, atespace: str = "team-a") -> pb.PauseActorRequest:
    return pb.PauseActorRequest(actor=ref(name, atespace))


def revert(name: str, atespace: str = "team-a") -> pb.RevertActorRequest:
    return pb.RevertActorRequest(actor=ref(name, atespace))


async def code_of(call: Any) -> tuple[str, str]:
    """(code, message) with which the call failed."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as e:
        return e.code().name, e.details() or ""
    raise AssertionError(f"succeeded with {answer}")


@contextlib.asynccontextmanager
async def control_plane(root: Path, **limits: Any) -> AsyncIterator[ControlPlane]:
    """Identity and a node agent; the test starts the ateapi as it likes."""
    identity = LocalIdentity(root / "state")
    identity.ensure()
    atelet = FakeAtelet()
    await atelet.start(
        identity.credential("atelet", spiffe.ATELET_ID), identity.trust("pod-identity")
    )
    try:
        yield ControlPlane(root, identity, atelet, **limits)
    finally:
        await atelet.stop()
