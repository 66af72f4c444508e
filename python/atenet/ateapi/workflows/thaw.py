"""Thaw: a resume of an actor that is frozen in a slot that it still holds."""

from __future__ import annotations

import logging
import time

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError
from atenet.ateapi.nodes import NodeError, handle_for
from atenet.ateapi.store import WorkerRow
from atenet.ateapi.workflows import changes, decide, frozen
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import Verdict
from atenet.ateapi.workflows.stops import reached
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["thaw"]

_log = logging.getLogger(__name__)


async def thaw(context: Context, actor: pb.Actor, row: WorkerRow | None) -> pb.Actor | None:
    """RUNNING; None when its memory turned out to be lost: it is then SUSPENDED, as of what is on
    its node's disk. Raises CallError.
    """
    uid = actor.metadata.uid
    if actor.status.state == pb.ACTOR_STATE_PAUSED:
        actor = await context.store.write(frozen.begin_thaw(uid, now=context.clock()))
        reached("thaw.begun")
    began = time.perf_counter()
    try:
        if row is None:
            raise NodeError(grpc.StatusCode.NOT_FOUND, "the worker is not known any more")
        await context.nodes.thaw(row.worker.node_endpoint, handle_for(actor))
    except NodeError as e:
        await _refused(context, actor, e)
        return None
    context.metrics.resume_phase("thaw", time.perf_counter() - began)
    reached("thaw.thawed")
    done = await context.store.write(changes.running(actor, now=context.clock()))
    reached("thaw.running")
    context.metrics.resumed()
    return done


async def _refused(context: Context, actor: pb.Actor, error: NodeError) -> None:
    uid, label = actor.metadata.uid, records.actor_label(actor)
    _, row = await context.look(uid)
    verdict = decide.pause_verdict(error.code, claim_good=context.claim_good(actor, row))
    _log.warning(
        "thaw refused",
        extra={"actor": label, "verdict": verdict.value, "error": str(error)},
    )
    if verdict is Verdict.RETRY:
        raise CallError(grpc.StatusCode.UNAVAILABLE, "the actor's node is unavailable; retry")
    # Whatever is wrong with its memory, its files are good.
    await suspend(context, uid)
