"""What the agent does for the control plane: start, store and end actors on this node."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import grpc

from atenet.atelet.files import ActorFiles
from atenet.atelet.golden import Golden, GoldenImages, wants_golden
from atenet.atelet.saving import let_go_on, save
from atenet.atelet.snapshot import Manifest, MemoryEntry, SnapshotDamagedError, SnapshotStore
from atenet.atelet.stopping import end_elsewhere, give_up_start, stop
from atenet.atelet.worker_calls import (
    Ended,
    Hosted,
    WorkerCallError,
    hosted,
    pause_workload,
    run_workload,
    thaw_workload,
)
from atenet.atelet.workers import KnownWorker, Workers
from atenet.errors import AteError
from atenet.gvisor import Runtime
from atenet.operations import Operations
from atenet.proto import ateapi_pb2, atelet_pb2, ateworker_pb2

__all__ = ["NodeAgent", "NothingStoredError", "Stored"]

_log = logging.getLogger(__name__)
_DATA = ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_DATA
_FULL = ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL


class NothingStoredError(AteError):
    """No file of this actor is on this node."""


@dataclass(frozen=True)
class Stored:
    """What became of an actor that was to be stored."""

    ended: Ended
    with_memory: bool


class NodeAgent:
    """One operation at a time per actor; each goes on when its caller leaves, and repeating one
    that took effect succeeds and changes nothing.

    `gateway`: where actors' egress gateway is, host:port; None: they reach nothing.
    """

    def __init__(
        self,
        files: ActorFiles,
        snapshots: SnapshotStore,
        workers: Workers,
        golden: GoldenImages,
        *,
        gateway: str | None = None,
    ) -> None:
        self._files = files
        self._golden = golden
        self._snapshots = snapshots
        self._workers = workers
        self._gateway = gateway
        self._operations = Operations()
        # The start that waits for its worker, by actor; the actor's lock is held meanwhile.
        self._starting: dict[str, atelet_pb2.ActorHandle] = {}

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
    ) -> atelet_pb2.StartTimings:
        """Start on the directories of the snapshot, and from its memory, if it has any.

        `files_only`: its memory is left aside.
        """
        return await self._operations.detached(
            self._start(handle, template, uri, files_only=files_only)
        )

    async def checkpoint(
        self,
        handle: atelet_pb2.ActorHandle,
        uri: str,
        *,
        full: bool = False,
        template_uid: str = "",
        if_idle_ms: int = 0,
    ) -> Stored:
        """Stops the actor and stores its directories, unless it is in use (see `if_idle_ms`).

        `full`: and its memory; KeptRunningError is raised when that cannot be. Also for an
        incarnation of the worker that is gone: then what is on disk is stored.
        """
        return await self._operations.detached(
            self._checkpoint(handle, uri, full, template_uid, if_idle_ms)
        )

    async def pause(self, handle: atelet_pb2.ActorHandle) -> None:
        """Freezes the actor where it is. Raises WorkerCallError and StaleWorkerError."""
        await self._operations.detached(self._on_worker(handle, pause_workload))

    async def thaw(self, handle: atelet_pb2.ActorHandle) -> None:
        """Lets it go on. Raises WorkerCallError and StaleWorkerError."""
        await self._operations.detached(self._on_worker(handle, thaw_workload))

    async def terminate(self, handle: atelet_pb2.ActorHandle) -> None:
        """Stops the actor and removes its directories; a start that waits is given up."""
        begun = self._starting.get(handle.actor_uid)
        if begun is not None and _same_activation(begun, handle):
            await give_up_start(self._workers, handle)
        await self._operations.detached(self._terminate(handle))

    async def close(self) -> None:
        """Waits for what was begun."""
        await self._operations.settled()

    async def _start(
        self,
        handle: atelet_pb2.ActorHandle,
        template: ateapi_pb2.ActorTemplate,
        uri: str | None,
        *,
        files_only: bool = False,
    ) -> atelet_pb2.StartTimings:
        uid = handle.actor_uid
        async with self._operations.lock(uid):
            worker = self._workers.current(handle.worker, handle.worker_epoch)
            await end_elsewhere(self._workers, handle)
            here = await hosted(worker, uid)
            if here is Hosted.ACTOR:
                return await self._run(worker, handle, template, None)
            if here is Hosted.GOLDEN:
                await stop(self._workers, handle, with_grace=False)
            if uri is None and wants_golden(template):
                started = await self._from_golden(worker, handle, template)
                if started is not None:
                    return started
            began = time.perf_counter()
            memory = await asyncio.to_thread(
                self._lay_out, uid, template, uri, files_only=files_only
            )
            fetched = (time.perf_counter() - began) * 1000
            try:
                timings = await self._run(worker, handle, template, memory)
            finally:
                await asyncio.to_thread(self._files.drop_memory, uid)
            timings.fetch_ms = fetched
            return timings

    async def _from_golden(
        self,
        worker: KnownWorker,
        handle: atelet_pb2.ActorHandle,
        template: ateapi_pb2.ActorTemplate,
    ) -> atelet_pb2.StartTimings | None:
        """None when there is no golden image and none can be made: it must boot by itself."""
        async with self._golden.lock(template):
            golden = await asyncio.to_thread(self._golden.find, template)
            if golden is None and not await asyncio.to_thread(self._golden.failed, template):
                golden = await self._make_golden(worker, handle, template)
        if golden is None:
            return None
        began = time.perf_counter()
        await asyncio.to_thread(self._lay_out_golden, handle.actor_uid, template, golden)
        fetched = (time.perf_counter() - began) * 1000
        memory = _described(golden.memory, golden.runtime)
        try:
            timings = await self._run(worker, handle, template, memory)
        except WorkerCallError as e:
            if e.code is not grpc.StatusCode.DATA_LOSS:
                raise
            # Of another runsc or processor than the worker's now: made anew by the next start.
            _log.warning("a golden image is not usable any more", extra={"error": e.message})
            await asyncio.to_thread(self._golden.forget, template)
            return None
        timings.fetch_ms = fetched
        return timings

    async def _make_golden(
        self,
        worker: KnownWorker,
        handle: atelet_pb2.ActorHandle,
        template: ateapi_pb2.ActorTemplate,
    ) -> Golden | None:
        """Boots the template in the actor's slot, as nobody and with no way out, and keeps what is
        there when its wakeup probe answers."""
        uid, for_good = handle.actor_uid, False
        try:
            memory = await asyncio.to_thread(self._golden.begin, template)
            await asyncio.to_thread(self._lay_out, uid, template, None, files_only=True)
            await self._run(worker, handle, template, None, golden=True)
            saved = await save(self._workers, handle, memory, if_idle_ms=0)
            if isinstance(saved, Ended):
                raise AteError("it ended while it was saved")
            volumes = await asyncio.to_thread(self._files.volumes, uid) or {}
            return await asyncio.to_thread(self._golden.keep, template, volumes, saved)
        except (AteError, OSError) as e:
            # A worker that is full or stopping says nothing about the template.
            for_good = isinstance(e, WorkerCallError) and e.code is grpc.StatusCode.INTERNAL
            _log.warning(
                "no golden image: actors of the template boot one by one",
                extra={"template": template.metadata.name, "error": str(e), "for_good": for_good},
            )
            return None
        finally:
            await stop(self._workers, handle, with_grace=False)
            await asyncio.to_thread(self._golden.give_up, template, for_good=for_good)
            await asyncio.to_thread(self._files.discard, uid)

    async def _run(
        self,
        worker: KnownWorker,
        handle: atelet_pb2.ActorHandle,
        template: ateapi_pb2.ActorTemplate,
        memory: ateworker_pb2.Memory | None,
        *,
        golden: bool = False,
    ) -> atelet_pb2.StartTimings:
        uid = handle.actor_uid
        worker.starting.add(uid)
        self._starting[uid] = handle
        try:
            directory = self._files.directory(uid)
            gateway = None if golden else self._gateway
            timings = await run_workload(
                worker, handle, template, directory, gateway, memory, golden=golden
            )
            worker.hosted.add(uid)
            return timings
        except BaseException:
            worker.hosted.discard(uid)
            raise
        finally:
            worker.starting.discard(uid)
            del self._starting[uid]

    async def _on_worker(
        self,
        handle: atelet_pb2.ActorHandle,
        call: Callable[[KnownWorker, atelet_pb2.ActorHandle], Awaitable[None]],
    ) -> None:
        async with self._operations.lock(handle.actor_uid):
            await call(self._workers.current(handle.worker, handle.worker_epoch), handle)

    async def _checkpoint(
        self,
        handle: atelet_pb2.ActorHandle,
        uri: str,
        full: bool,
        template_uid: str,
        if_idle_ms: int,
    ) -> Stored:
        uid = handle.actor_uid
        async with self._operations.lock(uid):
            done = await asyncio.to_thread(self._snapshots.find, uri)
            if done is not None and done.actor_uid == uid:
                await self._let_go(handle, done)
                ended = Ended.NOT_RUNNING if done.found_stopped else Ended.STOPPED
                return Stored(ended, done.memory is not None)
            await end_elsewhere(self._workers, handle)
            if await asyncio.to_thread(self._files.volumes, uid) is None:
                raise NothingStoredError(f"nothing of actor {uid} is on this node")
            if full:
                saved = await self._save_memory(handle, uri, template_uid, if_idle_ms)
                if saved is not Ended.NOT_RUNNING:
                    return Stored(saved, saved is Ended.STOPPED)
            ended = await stop(self._workers, handle, with_grace=True, if_idle_ms=if_idle_ms)
            if ended is not Ended.IN_USE:
                described = _describe(handle, found_stopped=ended is Ended.NOT_RUNNING)
                await asyncio.to_thread(self._save, uri, described)
                await asyncio.to_thread(self._files.discard, uid)
            return Stored(ended, with_memory=False)

    async def _save_memory(
        self, handle: atelet_pb2.ActorHandle, uri: str, template_uid: str, if_idle_ms: int
    ) -> Ended:
        """NOT_RUNNING: there is none any more. Raises KeptRunningError."""
        uid = handle.actor_uid
        directory = await asyncio.to_thread(self._files.fresh_memory, uid)
        try:
            saved = await save(self._workers, handle, directory, if_idle_ms=if_idle_ms)
            if isinstance(saved, Ended):
                return saved
            described = replace(_describe(handle, found_stopped=False), template_uid=template_uid)
            described = replace(described, content_scope=_scope(full=True))
            try:
                await asyncio.to_thread(self._save, uri, described, (directory, saved))
            except Exception as e:  # noqa: BLE001 - whatever it is, the actor stands still
                worker = self._workers.current(handle.worker, handle.worker_epoch)
                await let_go_on(worker, handle, e)
        finally:
            await asyncio.to_thread(self._files.drop_memory, uid)
        await stop(self._workers, handle, with_grace=False)
        await asyncio.to_thread(self._files.discard, uid)
        return Ended.STOPPED

    async def _let_go(self, handle: atelet_pb2.ActorHandle, done: Manifest) -> None:
        """It is stored: what stands still on the worker is not needed any more, nor are its files
        here, which an agent has left that was killed after storing."""
        if done.memory is not None:
            await stop(self._workers, handle, with_grace=False)
        elif self._workers.hosting(handle.actor_uid) is not None:
            return  # a late call: it runs again
        await asyncio.to_thread(self._files.discard, handle.actor_uid)

    async def _terminate(self, handle: atelet_pb2.ActorHandle) -> None:
        async with self._operations.lock(handle.actor_uid):
            await end_elsewhere(self._workers, handle)
            await stop(self._workers, handle, with_grace=False)
            await asyncio.to_thread(self._files.discard, handle.actor_uid)

    def _lay_out(
        self,
        uid: str,
        template: ateapi_pb2.ActorTemplate,
        uri: str | None,
        *,
        files_only: bool,
    ) -> ateworker_pb2.Memory | None:
        """Fresh directories: empty ones, or those of the snapshot, and its memory. Blocks."""
        self._files.discard(uid)
        memory = None
        if uri is not None:
            self._files.prepare(uid, ())
            target = self._files.volumes_directory(uid)
            target.rmdir()
            image = None if files_only else self._files.fresh_memory(uid)
            manifest = self._snapshots.load(uri, target, image)
            if image is not None and manifest.memory is not None:
                memory = _usable(manifest, manifest.memory, image, template)
        durable = [v.name for v in template.volumes if v.HasField("durable_dir")]
        self._files.prepare(uid, durable)
        return memory

    def _lay_out_golden(self, uid: str, template: ateapi_pb2.ActorTemplate, golden: Golden) -> None:
        """A copy of the image's directories. Blocks."""
        self._files.discard(uid)
        self._files.prepare(uid, ())
        golden.copy_volumes(self._files.volumes_directory(uid))
        durable = [v.name for v in template.volumes if v.HasField("durable_dir")]
        self._files.prepare(uid, durable)

    def _save(
        self, uri: str, described: Manifest, memory: tuple[Path, Runtime] | None = None
    ) -> None:
        volumes = self._files.volumes(described.actor_uid)
        if volumes is None:
            raise NothingStoredError(f"nothing of actor {described.actor_uid} is on this node")
        began = time.perf_counter()
        manifest = self._snapshots.save(uri, volumes, described, memory)
        sizes = [volume.size for volume in manifest.volumes]
        if manifest.memory is not None:
            sizes.append(manifest.memory.size)
        _log.info(
            "stored a snapshot",
            extra={
                "actor_uid": manifest.actor_uid,
                "uri": uri,
                "bytes": sum(sizes),
                "store_ms": round((time.perf_counter() - began) * 1000, 1),
            },
        )


def _usable(
    manifest: Manifest, entry: MemoryEntry, image: Path, template: ateapi_pb2.ActorTemplate
) -> ateworker_pb2.Memory:
    """Raises SnapshotDamagedError when it is not memory of this template."""
    if manifest.template_uid != template.metadata.uid:
        raise SnapshotDamagedError(
            "the snapshot's memory is of another template than the actor has now",
            hint="revert the actor: its files are kept",
        )
    return _described(image, entry.runtime)


def _described(image: Path, runtime: Runtime) -> ateworker_pb2.Memory:
    return ateworker_pb2.Memory(
        directory=str(image),
        runtime_version=runtime.version,
        machine=runtime.machine,
        cpu_features=runtime.features,
    )


def _same_activation(one: atelet_pb2.ActorHandle, other: atelet_pb2.ActorHandle) -> bool:
    return (one.worker, one.worker_epoch) == (other.worker, other.worker_epoch)


def _describe(handle: atelet_pb2.ActorHandle, *, found_stopped: bool) -> Manifest:
    return Manifest(
        atespace=handle.actor.atespace,
        actor=handle.actor.name,
        actor_uid=handle.actor_uid,
        content_scope=_scope(full=False),
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        found_stopped=found_stopped,
        volumes=(),
    )


def _scope(*, full: bool) -> str:
    return ateapi_pb2.SnapshotContentScope.Name(_FULL if full else _DATA)
