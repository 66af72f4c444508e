"""A whole node: a real atelet and real workers as processes; the test plays the control plane."""

import asyncio
import json
import secrets
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc, atelet_pb2, atelet_pb2_grpc
from atenet.rpc import MtlsServer, mtls_channel, mtls_server
from atenet.worker.network import clear_leftovers, netns
from atenet.worker.sandbox import Cgroups, Freezer
from atenet.worker.sandbox.gvisor.runsc import clear_states

from tests.support.actor_box import new_prefix
from tests.support.addresses import loopback_address
from tests.support.egress_agent import issued, present_policy
from tests.support.egress_pki import tunnel_id
from tests.support.eventually import eventually, within
from tests.support.pki import Authority

_STOP_SECONDS = 30
DATA = pb.SNAPSHOT_CONTENT_SCOPE_DATA
FULL = pb.SNAPSHOT_CONTENT_SCOPE_FULL


class Registrar(ateapi_pb2_grpc.WorkerServiceServicer):
    """The control plane as far as workers see it: notes every registration."""

    def __init__(self) -> None:
        self.seen: dict[str, list[pb.RegisterWorkerRequest]] = {}
        self.refuse: grpc.StatusCode | None = None
        self.refuse_minting: grpc.StatusCode | None = None
        self.asked_policies: list[pb.KnownEgressPolicy] = []
        # By the actor's uid; whoever is not here has none.
        self.policies: dict[str, pb.EgressPolicy] = {}
        self.actors: Authority | None = None
        self.minted: list[pb.MintWorkerActorCertificateRequest] = []
        self.lifetime = 3600.0

    async def GetWorkerActorEgressPolicies(
        self, request: pb.GetWorkerActorEgressPoliciesRequest, context: Any
    ) -> pb.GetWorkerActorEgressPoliciesResponse:
        if self.refuse is not None:
            await context.abort(self.refuse, "as ordered")
        self.asked_policies = list(request.known)
        present = [present_policy(known, self.policies) for known in request.known]
        return pb.GetWorkerActorEgressPoliciesResponse(present=present)

    async def MintWorkerActorCertificate(
        self, request: pb.MintWorkerActorCertificateRequest, context: Any
    ) -> pb.MintWorkerActorCertificateResponse:
        if self.actors is None or self.refuse_minting is not None:
            await context.abort(self.refuse_minting or grpc.StatusCode.FAILED_PRECONDITION, "no")
            raise AssertionError
        self.minted.append(request)
        uri = tunnel_id(f"{request.actor.atespace}/{request.actor.name}")
        asked = request.certificate_signing_request
        leaf = issued(self.actors, asked, uris=[uri], seconds=self.lifetime)
        return pb.MintWorkerActorCertificateResponse(actor_certificates=[leaf])

    async def RegisterWorker(
        self, request: pb.RegisterWorkerRequest, context: Any
    ) -> pb.RegisterWorkerResponse:
        if self.refuse is not None:
            await context.abort(self.refuse, "as ordered")
        self.seen.setdefault(request.worker.metadata.name, []).append(request)
        return pb.RegisterWorkerResponse(worker=request.worker)

    def last(self, worker: str) -> pb.RegisterWorkerRequest:
        return self.seen[worker][-1]

    def epochs(self, worker: str) -> list[int]:
        """Without repetition, in the order of their coming."""
        return list(dict.fromkeys(r.worker.epoch for r in self.seen.get(worker, [])))


@dataclass
class RunningWorker:
    """One ateworker process; `start` makes a new one of the same name after it ended."""

    name: str
    prefix: str
    ip: str
    process: Process
    addresses: dict[str, str]
    arguments: list[str]
    log: Path


@dataclass
class Node:
    root: Path
    identity: LocalIdentity
    registrar: Registrar
    snapshots: str = ""  # "": a directory below root
    workers: dict[str, RunningWorker] = field(default_factory=dict)
    atelet: Process | None = None
    stub: Any = None
    agent_flags: tuple[str, ...] = ()
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _api: MtlsServer | None = None

    # -- processes

    async def start_atelet(self) -> None:
        assert self._api is not None
        listen = "127.0.0.1:0" if self.stub is None else self.address
        self.atelet, addresses = await self._start(
            "atelet",
            *("--node", "node-1", "--listen", listen, "--api", self._api.address),
            *("--credential", str(self._agent_credential())),
            *("--trust", str(self.identity.trust("pod-identity"))),
            *("--api-roots", str(self.identity.trust("service-dns"))),
            *("--state-dir", str(self.root / "node")),
            *("--snapshots", self.snapshots or str(self.root / "snapshots")),
            *("--socket", str(self.root / "atelet.sock"), "--worker-timeout", "4s"),
            *self.agent_flags,
        )
        if self.stub is None:
            self.address = addresses["grpc"]
            self.stub = self.client(spiffe.API_ID)

    def _agent_credential(self) -> Path:
        return self.identity.credential("atelet", spiffe.ATELET_ID, node="node-1")

    def client(self, spiffe_id: str) -> Any:
        """A stub of the node agent's service, as whoever has this id."""
        channel = mtls_channel(
            self.address,
            credential=self.identity.credential(spiffe_id.rpartition("/")[2], spiffe_id),
            roots=self.identity.trust("pod-identity"),
            server_name=spiffe.pod_dns_name(spiffe.ATELET_ID),
        )
        self._stack.push_async_callback(channel.close)
        return atelet_pb2_grpc.AteletStub(channel)

    async def start_worker(self, name: str, *more: str, slots: int = 4) -> RunningWorker:
        ip = loopback_address()
        arguments = [
            *("--name", name, "--listen", f"{ip}:8443", "--ip", ip, "--slots", str(slots)),
            *("--atelet-socket", str(self.root / "atelet.sock")),
            *("--socket", str(self.root / f"{name}.sock")),
            *("--credential", str(self._worker_credential())),
            *("--trust", str(self.identity.trust("pod-identity"))),
            *("--state-dir", str(self.root / name), "--net-prefix", new_prefix()),
            *("--network-pool", "1", "--suspend-grace", "1s", "--stop-wait", "1s"),
            *more,
        ]
        return await self._run_worker(name, ip, arguments)

    async def restart(self, worker: RunningWorker) -> RunningWorker:
        return await self._run_worker(worker.name, worker.ip, worker.arguments)

    async def stop(self, process: Process) -> int:
        process.send_signal(signal.SIGTERM)
        return await within(process.wait(), _STOP_SECONDS)

    async def kill(self, process: Process) -> None:
        process.kill()
        await process.wait()

    # -- what the control plane says

    def handle(self, worker: str, uid: str, name: str = "agent") -> atelet_pb2.ActorHandle:
        return atelet_pb2.ActorHandle(
            actor=pb.ObjectRef(atespace="team", name=name),
            actor_uid=uid,
            worker=worker,
            worker_epoch=self.registrar.last(worker).worker.epoch,
        )

    def nowhere(self, uid: str, name: str = "agent") -> atelet_pb2.ActorHandle:
        """Of a paused actor, which no worker hosts."""
        return atelet_pb2.ActorHandle(actor=pb.ObjectRef(atespace="team", name=name), actor_uid=uid)

    async def run(self, handle: atelet_pb2.ActorHandle, template: pb.ActorTemplate) -> Any:
        request = atelet_pb2.RunRequest(handle=handle, template=template)
        return (await self.stub.Run(request, timeout=60)).timings

    async def restore(
        self,
        handle: atelet_pb2.ActorHandle,
        template: pb.ActorTemplate,
        uri: str,
        scope: pb.SnapshotContentScope = DATA,
    ) -> Any:
        request = atelet_pb2.RestoreRequest(
            handle=handle, template=template, snapshot_uri=uri, content_scope=scope
        )
        return (await self.stub.Restore(request, timeout=60)).timings

    async def checkpoint(self, handle: atelet_pb2.ActorHandle, uri: str) -> bool:
        request = atelet_pb2.CheckpointRequest(handle=handle, snapshot_uri=uri, content_scope=DATA)
        return bool((await self.stub.Checkpoint(request, timeout=60)).found_stopped)

    async def checkpoint_full(
        self, handle: atelet_pb2.ActorHandle, uri: str, template: pb.ActorTemplate
    ) -> atelet_pb2.CheckpointResponse:
        request = atelet_pb2.CheckpointRequest(
            handle=handle,
            snapshot_uri=uri,
            content_scope=FULL,
            template_uid=template.metadata.uid,
        )
        return await self.stub.Checkpoint(request, timeout=60)

    async def pause(self, handle: atelet_pb2.ActorHandle) -> None:
        await self.stub.Pause(atelet_pb2.PauseRequest(handle=handle), timeout=60)

    async def pause_kept(
        self, handle: atelet_pb2.ActorHandle, template: pb.ActorTemplate, name: str = "nap"
    ) -> atelet_pb2.PauseResponse:
        request = atelet_pb2.PauseRequest(
            handle=handle, local_snapshot_name=name, template_uid=template.metadata.uid
        )
        return await self.stub.Pause(request, timeout=60)

    async def restore_kept(
        self, handle: atelet_pb2.ActorHandle, template: pb.ActorTemplate, name: str = "nap"
    ) -> Any:
        request = atelet_pb2.RestoreRequest(
            handle=handle, template=template, local_snapshot_name=name, content_scope=FULL
        )
        return (await self.stub.Restore(request, timeout=60)).timings

    async def store_kept(
        self, uid: str, uri: str, name: str = "nap"
    ) -> atelet_pb2.CheckpointResponse:
        request = atelet_pb2.CheckpointRequest(
            handle=self.nowhere(uid),
            snapshot_uri=uri,
            content_scope=FULL,
            local_snapshot_name=name,
        )
        return await self.stub.Checkpoint(request, timeout=60)

    async def forget_kept(self, uid: str, name: str = "nap") -> None:
        request = atelet_pb2.TerminateRequest(handle=self.nowhere(uid), local_snapshot_name=name)
        await self.stub.Terminate(request, timeout=60)

    async def thaw(self, handle: atelet_pb2.ActorHandle) -> None:
        await self.stub.Thaw(atelet_pb2.ThawRequest(handle=handle), timeout=60)

    async def terminate(self, handle: atelet_pb2.ActorHandle) -> None:
        await self.stub.Terminate(atelet_pb2.TerminateRequest(handle=handle), timeout=60)

    def uri(self, uid: str, name: str | None = None) -> str:
        store = self.snapshots or f"file://{self.root}/snapshots"
        return f"{store}/team/{uid}/{name or secrets.token_hex(4)}"

    def volume(self, uid: str) -> Path:
        return self.root / "node" / "actors" / uid / "volumes" / "data"

    async def gateway(self, worker: str) -> Path:
        """The gateway namespace of the one actor that runs on the worker."""
        prefix = self.workers[worker].prefix
        used: list[Path] = []

        def found() -> bool:
            pairs = [name for name in netns.names(prefix) if not name.endswith("-at")]
            used[:] = [netns.path_of(f"{n}-at") for n in pairs if netns.processes_inside([n])]
            return len(used) == 1

        await eventually(found)
        return used[0]

    # -- inner

    def _worker_credential(self) -> Path:
        return self.identity.credential("worker", spiffe.pod_id("default", "local"))

    async def _run_worker(self, name: str, ip: str, arguments: list[str]) -> RunningWorker:
        process, addresses = await self._start("ateworker", *arguments, name=name)
        prefix = arguments[arguments.index("--net-prefix") + 1]
        log = self.root / f"{name}.log"
        made = RunningWorker(name, prefix, ip, process, addresses, arguments, log)
        self.workers[name] = made
        return made

    async def _start(
        self, program: str, *arguments: str, name: str | None = None
    ) -> tuple[Process, dict[str, str]]:
        name = name or program
        ready = self.root / f"{name}.ready"
        ready.unlink(missing_ok=True)
        with (self.root / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name(program)),
                *arguments,
                *("--ready-file", str(ready)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._stack.push_async_callback(_end, process)
        await eventually(lambda: ready.exists() or process.returncode is not None)
        assert process.returncode is None, (self.root / f"{name}.log").read_text()
        return process, json.loads(ready.read_text())


async def patiently(call: Callable[[], Awaitable[Any]]) -> Any:
    """As the control plane does: again while the node is not there yet."""
    for _ in range(100):
        try:
            return await call()
        except grpc.aio.AioRpcError as e:
            if e.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.1)
    raise TimeoutError


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
        await within(process.wait(), _STOP_SECONDS)


@asynccontextmanager
async def node(root: Path, *agent_flags: str, snapshots: str = "") -> AsyncIterator[Node]:
    """Ends every process and fails when one left namespaces behind after an orderly stop."""
    identity = LocalIdentity(root)
    identity.ensure()
    registrar = Registrar()
    api = mtls_server(
        "127.0.0.1:0",
        credential=identity.service_credential("ateapi", [spiffe.API_SERVER_NAME]),
        client_roots=identity.trust("pod-identity"),
    )
    ateapi_pb2_grpc.add_WorkerServiceServicer_to_server(registrar, api.server)
    await api.server.start()
    made = Node(root, identity, registrar, snapshots=snapshots, agent_flags=agent_flags)
    made._api = api
    made._stack.push_async_callback(api.server.stop, 0)
    try:
        await made.start_atelet()
        yield made
        await made._stack.aclose()
        left = [n for worker in made.workers.values() for n in netns.names(worker.prefix)]
        assert left == [], "namespaces left behind"
    finally:
        await made._stack.aclose()
        for worker in made.workers.values():
            Freezer(worker.prefix).clear()
            clear_leftovers(worker.prefix)
            clear_states(worker.prefix)
            Cgroups(worker.prefix).clear()
