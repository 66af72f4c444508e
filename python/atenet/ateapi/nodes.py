"""Calls to node agents: one pinned mTLS channel per node, outcomes as values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from atenet.ateapi.tracing import Tracing, ended
from atenet.identity.spiffe import ATELET_ID, pod_dns_name
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2 as node_pb
from atenet.proto import atelet_pb2_grpc as node_grpc
from atenet.rpc import MtlsChannel, mtls_channel

__all__ = ["Checkpointed", "NodeError", "Nodes", "handle_for"]

# A start waits for the wakeup probe, which has its own limit; this is what the rest may take.
_START_SECONDS = 60.0
_CHECKPOINT_SECONDS = 120.0
_TERMINATE_SECONDS = 20.0
# Memory is written and read as fast as the node's disk goes.
_MEMORY_SECONDS = 300.0
# A pause waits for the worker's grace.
_PAUSE_SECONDS = 60.0
_THAW_SECONDS = 20.0
_LOOK_UP_SECONDS = 2.0
_FULL = pb.SNAPSHOT_CONTENT_SCOPE_FULL


@dataclass
class NodeError(Exception):
    """The node agent's refusal. `details` is for logs and the crash record, not for callers."""

    code: grpc.StatusCode
    details: str

    def __str__(self) -> str:
        return f"{self.code.name}: {self.details}"


@dataclass(frozen=True)
class Checkpointed:
    """`stored`: False if it had to be idle and is not; `scope`: of what was stored; `kept_running`: why
    nothing could be stored, or empty; `memory_lost`: it was asked for, and went with its worker."""

    stored: bool
    scope: pb.SnapshotContentScope
    kept_running: str
    memory_lost: bool = False


def handle_for(actor: pb.Actor, *, epoch: int | None = None) -> node_pb.ActorHandle:
    """Names the actor's incarnation on the worker it is assigned to (or a later `epoch` of it)."""
    assignment = actor.status.worker_assignment
    return node_pb.ActorHandle(
        actor=pb.ObjectRef(atespace=actor.metadata.atespace, name=actor.metadata.name),
        actor_uid=actor.metadata.uid,
        worker=assignment.worker.name,
        worker_epoch=assignment.worker_epoch if epoch is None else epoch,
    )


class Nodes:
    """Dials node agents by their endpoint; whoever answers must be atelet."""

    def __init__(self, credential: Path, roots: Path, tracing: Tracing | None = None) -> None:
        self._credential = credential
        self._roots = roots
        self._tracing = tracing or Tracing()
        self._stubs: dict[str, tuple[MtlsChannel, Any]] = {}

    async def start(
        self,
        endpoint: str,
        handle: node_pb.ActorHandle,
        template: pb.ActorTemplate,
        snapshot: pb.ExternalSnapshot | None,
        local: str = "",
    ) -> node_pb.StartTimings:
        """Restores the snapshot, or runs the actor for the first time. `local`: instead, from what a
        pause of that name left on the node. Raises NodeError."""
        stub = self._stub(endpoint)
        probes = sum(c.wakeup_probe.timeout_seconds for c in template.containers)
        if local:
            call = stub.Restore
            request: Any = node_pb.RestoreRequest(
                handle=handle, template=template, local_snapshot_name=local, content_scope=_FULL
            )
        elif snapshot is None:
            call = stub.Run
            request = node_pb.RunRequest(handle=handle, template=template)
        else:
            call = stub.Restore
            request = node_pb.RestoreRequest(
                handle=handle,
                template=template,
                snapshot_uri=snapshot.snapshot_uri,
                content_scope=snapshot.content_scope,
            )
        full = bool(local) or (snapshot is not None and snapshot.content_scope == _FULL)
        seconds = _START_SECONDS + probes + (_MEMORY_SECONDS if full else 0)
        answer = await self._ask(call, request, seconds)
        timings: node_pb.StartTimings = answer.timings
        return timings

    async def checkpoint(
        self,
        endpoint: str,
        handle: node_pb.ActorHandle,
        uri: str,
        scope: pb.SnapshotContentScope,
        *,
        template_uid: str = "",
        if_idle_ms: int = 0,
        local: str = "",
    ) -> Checkpointed:
        """Stops the actor and stores its snapshot, or says why it runs on. `local`: stores what a pause
        of that name left on the node. Raises NodeError."""
        request = node_pb.CheckpointRequest(
            handle=handle,
            snapshot_uri=uri,
            content_scope=scope,
            if_idle_ms=if_idle_ms,
            template_uid=template_uid,
            local_snapshot_name=local,
        )
        full = scope == pb.SNAPSHOT_CONTENT_SCOPE_FULL
        seconds = _CHECKPOINT_SECONDS + (_MEMORY_SECONDS if full else 0)
        answer = await self._ask(self._stub(endpoint).Checkpoint, request, seconds)
        return Checkpointed(
            stored=not answer.in_use and not answer.kept_running,
            scope=answer.content_scope or scope,
            kept_running=answer.kept_running,
            memory_lost=answer.memory_lost,
        )

    async def pause(
        self,
        endpoint: str,
        handle: node_pb.ActorHandle,
        *,
        local: str = "",
        template_uid: str = "",
    ) -> str:
        """Closes its ingress and freezes it; `local`: keeps its memory on the node under that name, and
        ends it. Why it runs on, or "". Raises NodeError."""
        request = node_pb.PauseRequest(
            handle=handle, local_snapshot_name=local, template_uid=template_uid
        )
        seconds = _PAUSE_SECONDS + (_MEMORY_SECONDS if local else 0)
        answer = await self._ask(self._stub(endpoint).Pause, request, seconds)
        why: str = answer.kept_running
        return why

    async def thaw(self, endpoint: str, handle: node_pb.ActorHandle) -> None:
        """Lets it go on and opens its ingress. Raises NodeError."""
        await self._ask(
            self._stub(endpoint).Thaw, node_pb.ThawRequest(handle=handle), _THAW_SECONDS
        )

    async def terminate(
        self,
        endpoint: str,
        handle: node_pb.ActorHandle,
        *,
        seconds: float = _TERMINATE_SECONDS,
        local: str = "",
    ) -> None:
        """Stops the actor and forgets what was not stored; `local`: what a pause of that name left.
        Raises NodeError."""
        request = node_pb.TerminateRequest(handle=handle, local_snapshot_name=local)
        await self._ask(self._stub(endpoint).Terminate, request, seconds)

    async def forget_template(self, endpoint: str, uid: str) -> None:
        """Has the node remove what it keeps for a deleted template. Raises NodeError."""
        request = node_pb.ForgetTemplateRequest(template_uid=uid)
        try:
            await self._stub(endpoint).ForgetTemplate(request, timeout=_TERMINATE_SECONDS)
        except grpc.aio.AioRpcError as e:
            raise NodeError(e.code(), e.details() or "") from e

    async def worker_alive(self, endpoint: str, worker: str, epoch: int) -> bool:
        """Whether that incarnation lives, as its node's agent sees it. Raises NodeError."""
        request = node_pb.LookUpWorkerRequest(worker=worker, worker_epoch=epoch)
        try:
            answer = await self._stub(endpoint).LookUpWorker(request, timeout=_LOOK_UP_SECONDS)
        except grpc.aio.AioRpcError as e:
            raise NodeError(e.code(), e.details() or "") from e
        alive: bool = answer.alive
        return alive

    async def close(self) -> None:
        for channel, _ in self._stubs.values():
            await channel.close()
        self._stubs.clear()

    async def _ask(self, call: Any, request: Any, seconds: float) -> Any:
        method = type(request).__name__.removesuffix("Request")
        with self._tracing.asking(f"atelet.Atelet/{method}", request.handle) as (span, metadata):
            try:
                return await call(request, timeout=seconds, metadata=metadata)
            except grpc.aio.AioRpcError as e:
                ended(span, e.code().name)
                raise NodeError(e.code(), e.details() or "") from e

    def _stub(self, endpoint: str) -> Any:
        found = self._stubs.get(endpoint)
        if found is None:
            channel = mtls_channel(
                endpoint,
                credential=self._credential,
                roots=self._roots,
                server_name=pod_dns_name(ATELET_ID),
            )
            found = self._stubs[endpoint] = (channel, node_grpc.AteletStub(channel))
        return found[1]
