"""A node agent over real mTLS whose answers a test scripts; it hosts nothing."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

import grpc
from atenet.atelet.snapshot import Manifest, SnapshotStore
from atenet.gvisor import MemoryNeeds, Runtime
from atenet.proto import ateapi_pb2
from atenet.proto import atelet_pb2 as pb
from atenet.proto import atelet_pb2_grpc as pb_grpc
from atenet.rpc import mtls_server, peer_spiffe_id
from atenet.snapshots.filesystem import FileObjects

FULL = ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL
DATA = ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_DATA
Reply = grpc.StatusCode | Callable[[Any], Any]


@dataclass
class Call:
    method: str
    request: Any
    peer: str | None


@dataclass
class FakeAtelet(pb_grpc.AteletServicer):
    """Answers OK and keeps book of what it would host; `script` and `stall` change that.

    `hosted`: worker name -> uids, as a heartbeat would report them; `frozen`: those that are
    paused in their slot; `kept`: what pauses left here, uid -> name; `in_use`: those that are not
    idle, whatever they are asked; `alive`: workers that live although no heartbeat of theirs comes.
    """

    calls: list[Call] = field(default_factory=list)
    hosted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    frozen: set[str] = field(default_factory=set)
    kept: dict[str, str] = field(default_factory=dict)
    in_use: set[str] = field(default_factory=set)
    alive: set[str] = field(default_factory=set)
    refuse_pauses: str = ""
    address: str = ""
    _scripts: dict[str, deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    _always: dict[str, Reply] = field(default_factory=dict)
    _gates: dict[str, asyncio.Event] = field(default_factory=dict)
    _arrived: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    async def start(self, credential: Path, roots: Path, address: str = "127.0.0.1:0") -> None:
        served = mtls_server(address, credential=credential, client_roots=roots)
        pb_grpc.add_AteletServicer_to_server(self, served.server)
        await served.server.start()
        self._server = served.server
        self.address = served.address

    async def stop(self) -> None:
        for gate in self._gates.values():
            gate.set()
        await self._server.stop(0)

    def script(self, method: str, *replies: Reply) -> None:
        """The next answers of a method, one each; then OK again."""
        self._scripts[method].extend(replies)

    def always(self, method: str, reply: Reply | None) -> None:
        """Every answer of a method; None: OK again."""
        if reply is None:
            self._always.pop(method, None)
        else:
            self._always[method] = reply

    def stall(self, method: str) -> Callable[[], None]:
        """Calls of the method wait until the returned function is called."""
        gate = self._gates[method] = asyncio.Event()
        return gate.set

    async def arrived(self, method: str) -> None:
        """Waits until a call of the method has come in (since the last wait)."""
        await self._arrived[method].wait()
        self._arrived[method].clear()

    def count(self, method: str) -> int:
        return sum(call.method == method for call in self.calls)

    def last(self, method: str) -> Any:
        return [c.request for c in self.calls if c.method == method][-1]

    async def Run(self, request: pb.RunRequest, context: Any) -> pb.RunResponse:
        await self._play("Run", request, context)
        self._host(request.handle)
        return pb.RunResponse(timings=pb.StartTimings(sandbox_ms=1, ready_ms=2))

    async def Restore(self, request: pb.RestoreRequest, context: Any) -> pb.RestoreResponse:
        await self._play("Restore", request, context)
        if name := request.local_snapshot_name:
            await self._must_keep(request.handle, name, context)
            del self.kept[request.handle.actor_uid]
        self._host(request.handle)
        return pb.RestoreResponse(timings=pb.StartTimings(fetch_ms=1, sandbox_ms=1, ready_ms=2))

    async def Checkpoint(
        self, request: pb.CheckpointRequest, context: Any
    ) -> pb.CheckpointResponse:
        await self._play("Checkpoint", request, context)
        if request.if_idle_ms and request.handle.actor_uid in self.in_use:
            return pb.CheckpointResponse(in_use=True)
        uid, worker = request.handle.actor_uid, request.handle.worker
        name = request.local_snapshot_name
        if name:
            await self._must_keep(request.handle, name, context)
            del self.kept[uid]
        found_stopped = not name and uid not in self.hosted[worker]
        self._drop(uid)
        full = request.content_scope == FULL
        _write_snapshot(request, full and not found_stopped)
        return pb.CheckpointResponse(
            found_stopped=found_stopped,
            memory_lost=found_stopped and full,
            content_scope=DATA if found_stopped or not full else FULL,
        )

    async def Pause(self, request: pb.PauseRequest, context: Any) -> pb.PauseResponse:
        await self._play("Pause", request, context)
        uid, name = request.handle.actor_uid, request.local_snapshot_name
        if self.kept.get(uid) == name != "":
            return pb.PauseResponse(stored=True)
        await self._must_host(request.handle, context)
        if name and self.refuse_pauses:
            return pb.PauseResponse(kept_running=self.refuse_pauses)
        if name:
            self.kept[uid] = name
            self._drop(uid)
            return pb.PauseResponse(stored=True)
        self.frozen.add(uid)
        return pb.PauseResponse()

    async def Thaw(self, request: pb.ThawRequest, context: Any) -> pb.ThawResponse:
        await self._play("Thaw", request, context)
        await self._must_host(request.handle, context)
        self.frozen.discard(request.handle.actor_uid)
        return pb.ThawResponse()

    async def Terminate(self, request: pb.TerminateRequest, context: Any) -> pb.TerminateResponse:
        await self._play("Terminate", request, context)
        if name := request.local_snapshot_name:
            if self.kept.get(request.handle.actor_uid) == name:
                del self.kept[request.handle.actor_uid]
            return pb.TerminateResponse()
        self.hosted[request.handle.worker].discard(request.handle.actor_uid)
        self.frozen.discard(request.handle.actor_uid)
        return pb.TerminateResponse()

    async def ForgetTemplate(
        self, request: pb.ForgetTemplateRequest, context: Any
    ) -> pb.ForgetTemplateResponse:
        await self._play("ForgetTemplate", request, context)
        return pb.ForgetTemplateResponse()

    async def LookUpWorker(
        self, request: pb.LookUpWorkerRequest, context: Any
    ) -> pb.LookUpWorkerResponse:
        await self._play("LookUpWorker", request, context)
        return pb.LookUpWorkerResponse(alive=request.worker in self.alive)

    async def _play(self, method: str, request: Any, context: Any) -> None:
        self.calls.append(Call(method, request, peer_spiffe_id(context)))
        self._arrived[method].set()
        if gate := self._gates.get(method):
            await gate.wait()
        scripted = self._scripts[method]
        reply = scripted.popleft() if scripted else self._always.get(method)
        if callable(reply):
            reply = reply(request)
        if reply is not None:
            await context.abort(reply, f"scripted {reply.name} at /secret/path")

    def _host(self, handle: pb.ActorHandle) -> None:
        # At most one copy anywhere: the books say at once if the control plane made a second.
        others = [w for w, uids in self.hosted.items() if handle.actor_uid in uids]
        assert others in ([], [handle.worker]), f"{handle.actor_uid} already runs on {others}"
        self.hosted[handle.worker].add(handle.actor_uid)

    async def _must_host(self, handle: pb.ActorHandle, context: Any) -> None:
        if handle.actor_uid not in self.hosted[handle.worker]:
            await context.abort(grpc.StatusCode.NOT_FOUND, "not hosted")

    async def _must_keep(self, handle: pb.ActorHandle, name: str, context: Any) -> None:
        if self.kept.get(handle.actor_uid) != name:
            await context.abort(grpc.StatusCode.DATA_LOSS, "not kept here")

    def _drop(self, uid: str) -> None:
        self.frozen.discard(uid)
        for uids in self.hosted.values():
            uids.discard(uid)


def _write_snapshot(request: pb.CheckpointRequest, with_memory: bool) -> None:
    """A real one, of an empty durable directory and, if wanted, of a few bytes of memory."""
    where = snapshot_directory(request.snapshot_uri)
    store = SnapshotStore(FileObjects(where.parents[2]))
    described = Manifest(
        atespace=request.handle.actor.atespace,
        actor=request.handle.actor.name,
        actor_uid=request.handle.actor_uid,
        content_scope="",
        created="2026-01-01T00:00:00+00:00",
        found_stopped=False,
        volumes=(),
        template_uid=request.template_uid,
    )
    needs = MemoryNeeds(Runtime("release-1", "x86_64", ()), {"main": "host:1"})
    with TemporaryDirectory() as scratch:
        for name in ("data", "memory"):
            Path(scratch, name).mkdir()
            Path(scratch, name, "file").write_bytes(b"x" * 100)
        memory = (Path(scratch, "memory"), needs) if with_memory else None
        store.save(request.snapshot_uri, {"data": Path(scratch, "data")}, described, memory)


def snapshot_directory(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
