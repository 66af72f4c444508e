"""What the agent does for the control plane: start, store, pause and end actors on this node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from atenet.atelet.from_golden import start_from_golden
from atenet.atelet.golden import wants_golden
from atenet.atelet.parts import Parts
from atenet.atelet.pausing import Paused, forget_paused, keep_paused, store_paused
from atenet.atelet.starting import run_here, start_from_local, start_from_store
from atenet.atelet.stopping import end_elsewhere, give_up_start, stop
from atenet.atelet.storing import Stored, store
from atenet.atelet.worker_calls import Hosted, hosted, pause_workload, thaw_workload
from atenet.atelet.workers import KnownWorker
from atenet.operations import Operations
from atenet.proto import ateapi_pb2, atelet_pb2

__all__ = ["NodeAgent"]


class NodeAgent:
    """One operation at a time per actor; each goes on when its caller leaves, and repeating one
    that took effect succeeds and changes nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._operations = Operations()

    async def run(
        self, handle: atelet_pb2.ActorHandle, template: ateapi_pb2.ActorTemplate
    ) -> atelet_pb2.StartTimings:
        """First start, on empty durable directories."""
        return await self._operations.detached(self._start(handle, template, None))

    async def restore(
        self,
        handle: atelet_pb2.ActorHandle,
        template: ateapi_pb2.ActorTemplate,
        uri: str,
        *,
        files_only: bool = False,
        local: str = "",
    ) -> atelet_pb2.StartTimings:
        """Start on the directories of the snapshot, and from its memory, if it has any.

        `files_only`: its memory is left aside; `local`: instead, what a pause of that name has left
        on this node.
        """
        return await self._operations.detached(
            self._start(handle, template, uri, files_only=files_only, local=local)
        )

    async def checkpoint(
        self,
        handle: atelet_pb2.ActorHandle,
        uri: str,
        *,
        full: bool = False,
        template_uid: str = "",
        if_idle_ms: int = 0,
        local: str = "",
    ) -> Stored:
        """Stops the actor and stores its directories, unless it is in use (see `if_idle_ms`).

        `full`: and its memory; KeptRunningError is raised when that cannot be. Also for an
        incarnation of the worker that is gone: then what is on disk is stored. `local`: what a pause
        of that name has left here is stored instead.
        """

        async def checkpoint() -> Stored:
            async with self._operations.lock(handle.actor_uid):
                if local:
                    return await store_paused(self._parts, handle, uri, local)
                return await store(self._parts, handle, uri, full, template_uid, if_idle_ms)

        return await self._operations.detached(checkpoint())

    async def pause(
        self, handle: atelet_pb2.ActorHandle, *, local: str = "", template_uid: str = ""
    ) -> Paused:
        """Freezes the actor where it is; `local`: keeps its memory here under that name and ends it.

        Raises WorkerCallError, StaleWorkerError and KeptRunningError.
        """
        if not local:
            await self._operations.detached(self._on_worker(handle, pause_workload))
            return Paused.FROZEN

        async def keep() -> Paused:
            async with self._operations.lock(handle.actor_uid):
                return await keep_paused(self._parts, handle, local, template_uid)

        return await self._operations.detached(keep())

    async def thaw(self, handle: atelet_pb2.ActorHandle) -> None:
        """Lets it go on. Raises WorkerCallError and StaleWorkerError."""
        await self._operations.detached(self._on_worker(handle, thaw_workload))

    async def terminate(self, handle: atelet_pb2.ActorHandle, *, local: str = "") -> None:
        """Stops the actor and removes its directories; a start that waits is given up. `local`: what a
        pause of that name has left here, and the directories with it."""
        begun = self._parts.starting.get(handle.actor_uid)
        if begun is not None and not local and _same_activation(begun, handle):
            await give_up_start(self._parts.workers, handle)
        await self._operations.detached(self._terminate(handle, local))

    async def forget_template(self, uid: str) -> None:
        """It has no actors any more, and its uid never comes back."""
        await asyncio.to_thread(self._parts.golden.forget, uid)

    def worker_alive(self, name: str, epoch: int) -> bool:
        """Whether that incarnation lives, as far as this agent can know. Does not wait."""
        return self._parts.workers.alive(name, epoch)

    async def close(self) -> None:
        """Waits for what was begun."""
        await self._operations.settled()
        await self._parts.removals.settled()

    async def _start(
        self,
        handle: atelet_pb2.ActorHandle,
        template: ateapi_pb2.ActorTemplate,
        uri: str | None,
        *,
        files_only: bool = False,
        local: str = "",
    ) -> atelet_pb2.StartTimings:
        parts, uid = self._parts, handle.actor_uid
        async with self._operations.lock(uid):
            worker = parts.workers.current(handle.worker, handle.worker_epoch)
            await end_elsewhere(parts.workers, handle)
            here = await hosted(worker, uid)
            if here is Hosted.ACTOR:
                return await run_here(parts, worker, handle, template, None)
            if here is Hosted.GOLDEN:
                await stop(parts.workers, handle, with_grace=False)
            if local:
                return await start_from_local(parts, worker, handle, template, local)
            if uri is None and wants_golden(template):
                started = await start_from_golden(parts, worker, handle, template)
                if started is not None:
                    return started
            return await start_from_store(
                parts, worker, handle, template, uri, files_only=files_only
            )

    async def _on_worker(
        self,
        handle: atelet_pb2.ActorHandle,
        call: Callable[[KnownWorker, atelet_pb2.ActorHandle], Awaitable[None]],
    ) -> None:
        async with self._operations.lock(handle.actor_uid):
            await call(self._parts.workers.current(handle.worker, handle.worker_epoch), handle)

    async def _terminate(self, handle: atelet_pb2.ActorHandle, local: str) -> None:
        parts = self._parts
        async with self._operations.lock(handle.actor_uid):
            if local:
                await forget_paused(parts, handle.actor_uid, local)
                return
            await end_elsewhere(parts.workers, handle)
            await stop(parts.workers, handle, with_grace=False)
            await parts.discard(handle.actor_uid)


def _same_activation(one: atelet_pb2.ActorHandle, other: atelet_pb2.ActorHandle) -> bool:
    return (one.worker, one.worker_epoch) == (other.worker, other.worker_epoch)
