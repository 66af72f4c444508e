"""Starts an actor on a worker: from nothing, from a stored snapshot, or from what a pause left here."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from atenet.atelet.parts import Parts
from atenet.atelet.snapshot import Manifest, MemoryEntry, SnapshotDamagedError
from atenet.atelet.worker_calls import run_workload
from atenet.atelet.workers import KnownWorker
from atenet.gvisor import MemoryNeeds
from atenet.proto import ateapi_pb2, atelet_pb2, ateworker_pb2

__all__ = ["durable_names", "lay_out", "memory_from", "run_here", "start_from_local"]
__all__ += ["start_from_store"]


async def start_from_store(
    parts: Parts,
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    template: ateapi_pb2.ActorTemplate,
    uri: str | None,
    *,
    files_only: bool,
) -> atelet_pb2.StartTimings:
    """`uri`: None: on empty directories. The caller holds the actor's lock."""
    uid, began = handle.actor_uid, time.perf_counter()
    memory = await asyncio.to_thread(lay_out, parts, uid, template, uri, files_only=files_only)
    fetched = (time.perf_counter() - began) * 1000
    try:
        timings = await run_here(parts, worker, handle, template, memory)
    finally:
        await parts.drop_memory(uid)
    timings.fetch_ms = fetched
    return timings


async def start_from_local(
    parts: Parts,
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    template: ateapi_pb2.ActorTemplate,
    name: str,
) -> atelet_pb2.StartTimings:
    """Nothing is copied. One that fails leaves it here, to be tried again; whether that is still
    possible, the signature of the directories tells. The caller holds the actor's lock."""
    uid, began = handle.actor_uid, time.perf_counter()
    found = await asyncio.to_thread(parts.local.whole, uid, name, template.metadata.uid)
    fetched = (time.perf_counter() - began) * 1000
    memory = memory_from(found.memory, found.needs)
    timings = await run_here(parts, worker, handle, template, memory)
    await asyncio.to_thread(parts.local.drop, uid)
    timings.fetch_ms = fetched
    return timings


async def run_here(
    parts: Parts,
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    template: ateapi_pb2.ActorTemplate,
    memory: ateworker_pb2.Memory | None,
    *,
    golden: bool = False,
) -> atelet_pb2.StartTimings:
    """On the directories that are there. Raises WorkerCallError."""
    uid = handle.actor_uid
    worker.starting.add(uid)
    parts.starting[uid] = handle
    try:
        directory = parts.files.directory(uid)
        gateway = None if golden else parts.gateway
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
        del parts.starting[uid]


def lay_out(
    parts: Parts,
    uid: str,
    template: ateapi_pb2.ActorTemplate,
    uri: str | None,
    *,
    files_only: bool,
) -> ateworker_pb2.Memory | None:
    """Fresh directories: empty ones, or those of the snapshot, and its memory. Blocks."""
    files = parts.files
    files.discard(uid)
    memory = None
    if uri is not None:
        files.prepare(uid, ())
        target = files.volumes_directory(uid)
        target.rmdir()
        image = None if files_only else files.fresh_memory(uid)
        manifest = parts.snapshots.load(uri, target, image)
        if image is not None and manifest.memory is not None:
            memory = _usable(manifest, manifest.memory, image, template)
    files.prepare(uid, durable_names(template))
    return memory


def durable_names(template: ateapi_pb2.ActorTemplate) -> list[str]:
    return [v.name for v in template.volumes if v.HasField("durable_dir")]


def memory_from(image: Path, needs: MemoryNeeds, *, newest: bool = False) -> ateworker_pb2.Memory:
    """`newest`: it is good only while its root file systems are what a first start gets."""
    return ateworker_pb2.Memory(
        directory=str(image),
        runtime_version=needs.runtime.version,
        machine=needs.runtime.machine,
        cpu_features=needs.runtime.features,
        roots=needs.roots,
        newest=newest,
    )


def _usable(
    manifest: Manifest, entry: MemoryEntry, image: Path, template: ateapi_pb2.ActorTemplate
) -> ateworker_pb2.Memory:
    """Raises SnapshotDamagedError when it is not memory of this template, or of unknown files."""
    if manifest.template_uid != template.metadata.uid:
        raise SnapshotDamagedError(
            "the snapshot's memory is of another template than the actor has now",
            hint="revert the actor: its files are kept",
        )
    if not entry.roots:
        raise SnapshotDamagedError(
            "the snapshot does not say which root file systems its memory is of",
            hint="revert the actor: its files are kept",
        )
    return memory_from(image, entry.needs)
