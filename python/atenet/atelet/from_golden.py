"""Starts a new actor from its template's golden image, and makes that when there is none."""

from __future__ import annotations

import asyncio
import logging
import time

import grpc

from atenet.atelet.golden import Golden
from atenet.atelet.parts import Parts
from atenet.atelet.saving import save
from atenet.atelet.starting import durable_names, lay_out, memory_from, run_here
from atenet.atelet.stopping import stop
from atenet.atelet.worker_calls import Ended, WorkerCallError
from atenet.atelet.workers import KnownWorker
from atenet.errors import AteError
from atenet.proto import ateapi_pb2, atelet_pb2

__all__ = ["start_from_golden"]

_log = logging.getLogger(__name__)
# The second is of an image that has just been made.
_ATTEMPTS = 2


async def start_from_golden(
    parts: Parts,
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    template: ateapi_pb2.ActorTemplate,
) -> atelet_pb2.StartTimings | None:
    """None when there is no golden image and none can be made: it must boot by itself.

    The caller holds the actor's lock.
    """
    for _ in range(_ATTEMPTS):
        async with parts.golden.lock(template):
            golden = await asyncio.to_thread(parts.golden.find, template)
            if golden is None and not await asyncio.to_thread(parts.golden.failed, template):
                golden = await _make(parts, worker, handle, template)
        if golden is None:
            return None
        began = time.perf_counter()
        await asyncio.to_thread(_lay_out, parts, handle.actor_uid, template, golden)
        fetched = (time.perf_counter() - began) * 1000
        memory = memory_from(golden.memory, golden.needs, newest=True)
        try:
            timings = await run_here(parts, worker, handle, template, memory)
        except WorkerCallError as e:
            if e.code is not grpc.StatusCode.DATA_LOSS:
                raise
            # Of another runsc, processor or root file system than there is now.
            _log.warning("a golden image is not usable any more", extra={"error": e.message})
            await _forget(parts, template, golden)
            continue
        timings.fetch_ms = fetched
        return timings
    return None


async def _forget(parts: Parts, template: ateapi_pb2.ActorTemplate, golden: Golden) -> None:
    """Unless another start has replaced it by now."""
    async with parts.golden.lock(template):
        now = await asyncio.to_thread(parts.golden.find, template)
        if now is not None and now.needs == golden.needs:
            await asyncio.to_thread(parts.golden.forget, template.metadata.uid)


async def _make(
    parts: Parts,
    worker: KnownWorker,
    handle: atelet_pb2.ActorHandle,
    template: ateapi_pb2.ActorTemplate,
) -> Golden | None:
    """Boots the template in the actor's slot, as nobody and with no way out, and keeps what is
    there when its wakeup probe answers."""
    uid, for_good = handle.actor_uid, False
    try:
        memory = await asyncio.to_thread(parts.golden.begin, template)
        await asyncio.to_thread(lay_out, parts, uid, template, None, files_only=True)
        await run_here(parts, worker, handle, template, None, golden=True)
        saved = await save(parts.workers, handle, memory, if_idle_ms=0)
        if isinstance(saved, Ended):
            raise AteError("it ended while it was saved")
        volumes = await asyncio.to_thread(parts.files.volumes, uid) or {}
        return await asyncio.to_thread(parts.golden.keep, template, volumes, saved)
    except (AteError, OSError) as e:
        # A worker that is full or stopping says nothing about the template.
        for_good = not isinstance(e, WorkerCallError) or e.code is grpc.StatusCode.INTERNAL
        _log.warning(
            "no golden image: actors of the template boot one by one",
            extra={"template": template.metadata.name, "error": str(e), "for_good": for_good},
        )
        return None
    finally:
        await stop(parts.workers, handle, with_grace=False)
        await asyncio.to_thread(parts.golden.give_up, template, for_good=for_good)
        await parts.discard(uid)


def _lay_out(parts: Parts, uid: str, template: ateapi_pb2.ActorTemplate, golden: Golden) -> None:
    """A copy of the image's directories. Blocks."""
    parts.files.discard(uid)
    parts.files.prepare(uid, ())
    golden.copy_volumes(parts.files.volumes_directory(uid))
    parts.files.prepare(uid, durable_names(template))
