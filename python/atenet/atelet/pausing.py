"""Pauses an actor by keeping its memory on this node, so that its slot is free; stores or forgets
what that left."""

from __future__ import annotations

import asyncio
import enum
import logging
import time

import grpc

from atenet.atelet.parts import Parts
from atenet.atelet.saving import KeptRunningError, let_go_on, save
from atenet.atelet.snapshot import SnapshotMissingError, TooDeepError
from atenet.atelet.stopping import end_elsewhere, stop
from atenet.atelet.storing import Stored, describe, put
from atenet.atelet.worker_calls import Ended, WorkerCallError
from atenet.atelet.workers import StaleWorkerError
from atenet.errors import AteError
from atenet.proto import atelet_pb2

__all__ = ["Paused", "forget_paused", "keep_paused", "store_paused"]

_log = logging.getLogger(__name__)


class Paused(enum.Enum):
    FROZEN = "frozen"  # in its slot
    STORED = "stored"  # on this node; its slot is free


async def keep_paused(
    parts: Parts, handle: atelet_pb2.ActorHandle, name: str, template_uid: str
) -> Paused:
    """The caller holds the actor's lock. Raises KeptRunningError: it runs on; WorkerCallError:
    NOT_FOUND when its memory is lost."""
    uid = handle.actor_uid
    if await asyncio.to_thread(parts.local.find, uid, name) is None:
        await _keep(parts, handle, name, template_uid)
    # Also by an agent that was killed after it was kept.
    await end_elsewhere(parts.workers, handle)
    await stop(parts.workers, handle, with_grace=False)
    return Paused.STORED


async def _keep(parts: Parts, handle: atelet_pb2.ActorHandle, name: str, template_uid: str) -> None:
    uid = handle.actor_uid
    await end_elsewhere(parts.workers, handle)
    try:
        await asyncio.to_thread(parts.local.check_room)
    except AteError as e:
        raise KeptRunningError(str(e)) from e
    directory = await asyncio.to_thread(parts.files.fresh_memory, uid)
    try:
        saved = await save(parts.workers, handle, directory, if_idle_ms=0)
        if isinstance(saved, Ended):
            raise WorkerCallError(grpc.StatusCode.NOT_FOUND, f"its memory is gone: {saved.value}")
        began = time.perf_counter()
        try:
            await asyncio.to_thread(parts.local.keep, uid, name, template_uid, directory, saved)
        except Exception as e:  # noqa: BLE001 - whatever it is, the actor stands still
            worker = parts.workers.current(handle.worker, handle.worker_epoch)
            await let_go_on(worker, handle, e, where="this node")
        kept = round((time.perf_counter() - began) * 1000, 1)
        _log.info("kept a paused actor", extra={"actor_uid": uid, "keep_ms": kept})
    finally:
        await parts.drop_memory(uid)


async def store_paused(parts: Parts, handle: atelet_pb2.ActorHandle, uri: str, name: str) -> Stored:
    """As a suspend would have: memory and directories, to the store. Nothing of it is left here.

    The caller holds the actor's lock. Raises SnapshotMissingError, SnapshotDamagedError, and
    KeptRunningError: it is still here.
    """
    uid = handle.actor_uid
    done = await asyncio.to_thread(parts.snapshots.find, uri)
    if done is None or done.actor_uid != uid:
        _nobody_runs(parts, uid)
        try:
            await asyncio.to_thread(_upload, parts, handle, uri, name)
        except (OSError, TooDeepError) as e:
            raise KeptRunningError(f"snapshot store: {e}") from e
    if parts.workers.hosting(uid) is None:
        await parts.discard(uid)
    return Stored(Ended.STOPPED, with_memory=True)


async def forget_paused(parts: Parts, uid: str, name: str) -> None:
    """Only what that pause has left: another may have come after it. The caller holds the lock."""
    here = await asyncio.to_thread(parts.local.name, uid)
    if here not in (name, "") or parts.workers.hosting(uid) is not None:
        return
    # Directories that changed since are a later activation's, whose end is still to be dealt with.
    unused = await asyncio.to_thread(parts.local.is_unused, uid, name)
    if unused:
        await parts.discard(uid)
    else:
        await asyncio.to_thread(parts.local.drop, uid)


def _upload(parts: Parts, handle: atelet_pb2.ActorHandle, uri: str, name: str) -> None:
    found = parts.local.find(handle.actor_uid, name)
    if found is None:
        raise SnapshotMissingError(
            f"this node does not have the paused actor's memory {name} any more",
            hint="revert the actor: it goes back to its last stored snapshot",
        )
    whole = parts.local.whole(handle.actor_uid, name, found.template_uid)
    described = describe(handle, template_uid=whole.template_uid)
    put(parts, uri, described, (whole.memory, whole.needs))


def _nobody_runs(parts: Parts, uid: str) -> None:
    """Raises StaleWorkerError: the actor is not paused any more."""
    host = parts.workers.hosting(uid)
    if host is not None:
        raise StaleWorkerError(
            f"actor {uid} runs on worker {host.name!r}, the call says it is paused"
        )
