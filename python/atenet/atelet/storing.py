"""Stores an actor: what is on disk, and its memory where that was asked for; then it is ended."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from atenet.atelet.parts import Parts
from atenet.atelet.saving import KeptRunningError, let_go_on, save
from atenet.atelet.snapshot import Manifest, TooDeepError, check_depth
from atenet.atelet.stopping import end_elsewhere, stop
from atenet.atelet.worker_calls import Ended
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds
from atenet.proto import ateapi_pb2, atelet_pb2

__all__ = ["NothingStoredError", "Stored", "describe", "put", "store"]

_log = logging.getLogger(__name__)
_DATA = ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_DATA
_FULL = ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL


class NothingStoredError(AteError):
    """No file of this actor is on this node."""


@dataclass(frozen=True)
class Stored:
    """What became of an actor that was to be stored. `memory_lost`: it went with its worker."""

    ended: Ended
    with_memory: bool
    memory_lost: bool = False


async def store(
    parts: Parts,
    handle: atelet_pb2.ActorHandle,
    uri: str,
    full: bool,
    template_uid: str,
    if_idle_ms: int,
) -> Stored:
    """The caller holds the actor's lock. Raises KeptRunningError, also when its directories are such
    that no snapshot holds them: that is found out before anything is ended."""
    uid = handle.actor_uid
    done = await asyncio.to_thread(parts.snapshots.find, uri)
    if done is not None and done.actor_uid == uid:
        await _let_go(parts, handle, done)
        ended = Ended.NOT_RUNNING if done.found_stopped else Ended.STOPPED
        return Stored(ended, done.memory is not None, done.memory_lost)
    await end_elsewhere(parts.workers, handle)
    if await asyncio.to_thread(parts.files.volumes, uid) is None:
        raise NothingStoredError(f"nothing of actor {uid} is on this node")
    lost = False
    if full:
        saved = await _save_memory(parts, handle, uri, template_uid, if_idle_ms)
        lost = saved is Ended.LOST
        if saved in (Ended.STOPPED, Ended.IN_USE):
            return Stored(saved, saved is Ended.STOPPED)
    await _refuse_too_deep(parts, handle)
    ended = await stop(parts.workers, handle, with_grace=True, if_idle_ms=if_idle_ms)
    if ended is not Ended.IN_USE:
        described = describe(handle, found_stopped=ended is Ended.NOT_RUNNING)
        await asyncio.to_thread(put, parts, uri, replace(described, memory_lost=lost))
        await parts.discard(uid)
    return Stored(ended, with_memory=False, memory_lost=lost)


def put(
    parts: Parts, uri: str, described: Manifest, memory: tuple[Path, MemoryNeeds] | None = None
) -> None:
    """Blocks. Raises OSError and NothingStoredError."""
    volumes = parts.files.volumes(described.actor_uid)
    if volumes is None:
        raise NothingStoredError(f"nothing of actor {described.actor_uid} is on this node")
    began = time.perf_counter()
    manifest = parts.snapshots.save(uri, volumes, described, memory)
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


def describe(
    handle: atelet_pb2.ActorHandle, *, found_stopped: bool = False, template_uid: str = ""
) -> Manifest:
    """`template_uid`: with memory, which is of that template."""
    scope = _FULL if template_uid else _DATA
    return Manifest(
        atespace=handle.actor.atespace,
        actor=handle.actor.name,
        actor_uid=handle.actor_uid,
        content_scope=ateapi_pb2.SnapshotContentScope.Name(scope),
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        found_stopped=found_stopped,
        volumes=(),
        template_uid=template_uid,
    )


async def _refuse_too_deep(parts: Parts, handle: atelet_pb2.ActorHandle) -> None:
    """Only where there is something to go on: what has ended fails when it is stored."""
    worker = parts.workers.find(handle.worker, handle.worker_epoch)
    if worker is None or not worker.accepts() or parts.workers.is_silent(worker):
        return
    if handle.actor_uid not in worker.hosted:
        return
    volumes = await asyncio.to_thread(parts.files.volumes, handle.actor_uid) or {}
    for name, volume in volumes.items():
        try:
            await asyncio.to_thread(check_depth, volume)
        except TooDeepError as e:
            raise KeptRunningError(f"volume {name}: {e.message}", hint=e.hint) from e
        except OSError:
            return  # it changes while it is read; what cannot be stored says so then


async def _save_memory(
    parts: Parts, handle: atelet_pb2.ActorHandle, uri: str, template_uid: str, if_idle_ms: int
) -> Ended:
    """NOT_RUNNING and LOST: there is none any more. Raises KeptRunningError."""
    uid = handle.actor_uid
    directory = await asyncio.to_thread(parts.files.fresh_memory, uid)
    try:
        saved = await save(parts.workers, handle, directory, if_idle_ms=if_idle_ms)
        if isinstance(saved, Ended):
            await parts.drop_memory(uid)
            return saved
        described = describe(handle, template_uid=template_uid)
        try:
            await asyncio.to_thread(put, parts, uri, described, (directory, saved))
        except Exception as e:  # noqa: BLE001 - whatever it is, the actor stands still
            worker = parts.workers.current(handle.worker, handle.worker_epoch)
            await let_go_on(worker, handle, e)
    except BaseException:
        await parts.drop_memory(uid)
        raise
    await stop(parts.workers, handle, with_grace=False)
    await parts.discard(uid)
    return Ended.STOPPED


async def _let_go(parts: Parts, handle: atelet_pb2.ActorHandle, done: Manifest) -> None:
    """It is stored: what stands still on the worker is not needed any more, nor are its files
    here, which an agent has left that was killed after storing."""
    if done.memory is not None:
        await stop(parts.workers, handle, with_grace=False)
    elif parts.workers.hosting(handle.actor_uid) is not None:
        return  # a late call: it runs again
    await parts.discard(handle.actor_uid)
