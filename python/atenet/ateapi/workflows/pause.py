"""Pause: have the node keep the actor's memory, and free its slot; or, where its class writes none, have
it frozen in place, and it keeps its slot."""

from __future__ import annotations

import logging

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError, not_found, precondition
from atenet.ateapi.nodes import NodeError, handle_for
from atenet.ateapi.store import WorkerRow
from atenet.ateapi.workflows import changes, decide, frozen
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import PauseStep, Verdict
from atenet.ateapi.workflows.stops import reached
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["pause"]

_log = logging.getLogger(__name__)


async def pause(context: Context, uid: str) -> pb.Actor:
    """Brings the actor to PAUSED from wherever it stopped. Raises CallError.

    If its node cannot freeze it, it is RUNNING as before; if its worker is lost, it is SUSPENDED.
    The caller holds the actor's operation lock.
    """
    actor, row = await context.look(uid)
    if actor is None:
        raise not_found("the actor")
    begun = actor.status.in_progress_local_snapshot_name
    step = decide.pause_step(
        actor.status.state,
        claim_good=context.claim_good(actor, row),
        kept=bool(begun) and not begun.startswith(records.FROZEN),
    )
    if step is PauseStep.DONE:
        actor.status.ClearField("worker_assignment")  # as stored
        return actor
    if step is PauseStep.REFUSE:
        word = records.state_word(actor.status.state)
        raise precondition(f"{records.actor_label(actor)} is {word}; only a RUNNING one is paused")
    if step is PauseStep.STORE:
        await _store_instead(context, actor)
    if step is PauseStep.BEGIN:
        actor = await context.store.write(frozen.begin_pause(uid, now=context.clock()))
        reached("pause.begun")
    await _freeze(context, actor, row)
    reached("pause.frozen")
    done = await context.store.write(frozen.paused(uid, now=context.clock()))
    reached("pause.done")
    _log.info(
        "actor paused",
        extra={"atespace": actor.metadata.atespace, "actor": actor.metadata.name},
    )
    return done


async def _freeze(context: Context, actor: pb.Actor, row: WorkerRow | None) -> None:
    """Returns when it is frozen or kept. Raises CallError."""
    name = actor.status.in_progress_local_snapshot_name
    kept = not name.startswith(records.FROZEN)
    ref = actor.actor_template
    template = await context.store.read(lambda tx: tx.templates.get(ref.atespace, ref.name))
    try:
        if row is None:
            raise NodeError(grpc.StatusCode.NOT_FOUND, "the worker is not known any more")
        why = await context.nodes.pause(
            row.worker.node_endpoint,
            handle_for(actor),
            local=name if kept else "",
            template_uid=template.metadata.uid if template and kept else "",
        )
    except NodeError as e:
        await _refused(context, actor, e)
        return
    if why:
        await context.store.write(changes.keep_running(actor.metadata.uid, now=context.clock()))
        raise precondition(f"{records.actor_label(actor)} cannot be paused and runs on: {why}")


async def _refused(context: Context, actor: pb.Actor, error: NodeError) -> None:
    uid, label = actor.metadata.uid, records.actor_label(actor)
    _, row = await context.look(uid)
    verdict = decide.pause_verdict(error.code, claim_good=context.claim_good(actor, row))
    _log.warning(
        "pause refused",
        extra={"actor": label, "verdict": verdict.value, "error": str(error)},
    )
    if verdict is Verdict.RETRY:
        raise CallError(grpc.StatusCode.UNAVAILABLE, "the actor's node is unavailable; retry")
    if verdict is Verdict.CANNOT:
        await context.store.write(changes.keep_running(uid, now=context.clock()))
        raise precondition(f"{label} cannot be paused: its node has no writable cgroup freezer")
    await _store_instead(context, actor)


async def _store_instead(context: Context, actor: pb.Actor) -> None:
    """Its files outlive its processes. Raises CallError, whatever becomes of it."""
    await suspend(context, actor.metadata.uid)
    raise precondition(f"{records.actor_label(actor)} was lost by its worker; it is SUSPENDED")
