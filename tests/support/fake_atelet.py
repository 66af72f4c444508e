"""A node agent over real mTLS whose answers a test scripts; it hosts nothing."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import grpc
from atenet.proto import atelet_pb2 as pb
from atenet.proto import atelet_pb2_grpc as pb_grpc
from atenet.rpc import mtls_server, peer_spiffe_id

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
    paused; `in_use`: those that are not idle, whatever they are asked.
    """

    calls: list[Call] = field(default_factory=list)
    hosted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    frozen: set[str] = field(default_factory=set)
    in_use: set[str] = field(default_factory=set)
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
        self._host(request.handle)
        return pb.RestoreResponse(timings=pb.StartTimings(fetch_ms=1, sandbox_ms=1, ready_ms=2))

    async def Checkpoint(
        self, request: pb.CheckpointRequest, context: Any
    ) -> pb.CheckpointResponse:
        await self._play("Checkpoint", request, context)
        if request.if_idle_ms and request.handle.actor_uid in self.in_use:
            return pb.CheckpointResponse(in_use=True)
        uid, worker = request.handle.actor_uid, request.handle.worker
        found_stopped = uid not in self.hosted[worker]
        self._drop(uid)
        directory = snapshot_directory(request.snapshot_uri)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "manifest.json").write_text("{}")
        return pb.CheckpointResponse(found_stopped=found_stopped)

    async def Pause(self, request: pb.PauseRequest, context: Any) -> pb.PauseResponse:
        await self._play("Pause", request, context)
        await self._must_host(request.handle, context)
        self.frozen.add(request.handle.actor_uid)
        return pb.PauseResponse()

    async def Thaw(self, request: pb.ThawRequest, context: Any) -> pb.ThawResponse:
        await self._play("Thaw", request, context)
        await self._must_host(request.handle, context)
        self.frozen.discard(request.handle.actor_uid)
        return pb.ThawResponse()

    async def Terminate(self, request: pb.TerminateRequest, context: Any) -> pb.TerminateResponse:
        await self._play("Terminate", request, context)
        self.hosted[request.handle.worker].discard(request.handle.actor_uid)
        self.frozen.discard(request.handle.actor_uid)
        return pb.TerminateResponse()

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

    def _drop(self, uid: str) -> None:
        self.frozen.discard(uid)
        for uids in self.hosted.values():
            uids.discard(uid)


def snapshot_directory(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
