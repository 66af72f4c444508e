"""Resume: claim a slot, start the actor there, store that it runs; or thaw it where it is frozen."""

from __future__ import annotations

import contextlib
import logging
import time

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError, not_found, precondition
from atenet.ateapi.nodes import NodeError, handle_for
from atenet.ateapi.store import WorkerRow
from atenet.ateapi.workflows import changes, decide
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import ResumeStep, Verdict
from atenet.ateapi.workflows.moving import move_elsewhere, room_elsewhere
from atenet.ateapi.workflows.reclaim import reclaim
from atenet.ateapi.workflows.shortage import tell_shortage
from atenet.ateapi.workflows.stops import reached
from atenet.ateapi.workflows.suspend import suspend
from atenet.ateapi.workflows.thaw import thaw
from atenet.proto import ateapi_pb2 as pb

__all__ = ["abandon", "resume"]

_log = logging.getLogger(__name__)
# Workers that die one after the other under the same actor; then the caller may retry.
_MAX_CLAIMS = 4
_ABANDON_SECONDS = 2.0

_NO_ROOM = CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "no free workers available")


async def resume(context: Context, uid: str) -> tuple[pb.Actor, bool]:
    """Brings the actor to RUNNING from wherever it stopped. Raises CallError.

    The second value is False when there was nothing to do.

    The caller holds the actor's operation lock.
    """
    for _ in range(_MAX_CLAIMS):
        actor, row = await context.look(uid)
        if actor is None:
            raise not_found("the actor")
        step = _next(context, actor, row)
        if step is ResumeStep.DONE:
            return actor, False
        if step is ResumeStep.REFUSE:
            raise precondition(_not_resumable(actor))
        started = await _take(context, step, actor, row)
        if started is not None:
            return started, True
    raise CallError(grpc.StatusCode.UNAVAILABLE, "workers keep failing; retry")


def _next(context: Context, actor: pb.Actor, row: WorkerRow | None) -> ResumeStep:
    return decide.resume_step(
        actor.status.state,
        claim_good=context.placeable(actor, row),
        frozen=records.is_frozen(actor),
        kept=records.is_kept(actor),
    )


async def _take(
    context: Context, step: ResumeStep, actor: pb.Actor, row: WorkerRow | None
) -> pb.Actor | None:
    """RUNNING; None when the actor is to be looked at again. Raises CallError."""
    if step is ResumeStep.STORE:
        await suspend(context, actor.metadata.uid)
        return None
    if step is ResumeStep.THAW:
        return await thaw(context, actor, row)
    if step is ResumeStep.RECLAIM:
        await abandon(context, actor, row)
    if step is not ResumeStep.START:
        claimed = await _claim(context, actor)
        if claimed is None:
            await move_elsewhere(context, actor.metadata.uid)
            return None
        actor, row = claimed
    return await _start(context, actor, row)


async def _claim(context: Context, actor: pb.Actor) -> tuple[pb.Actor, WorkerRow | None] | None:
    """None when the node that keeps it has no room, and others have. Raises CallError."""
    began, uid = time.perf_counter(), actor.metadata.uid
    change = changes.claim(
        uid, now=context.clock(), heard_after=context.heard_after, pack=context.pack
    )
    claimed = await context.store.write(change)
    if claimed is None and records.is_kept(actor) and await room_elsewhere(context, uid):
        return None
    claimed = claimed or await reclaim(context, uid)
    context.metrics.claimed(granted=claimed is not None)
    if claimed is None:
        await tell_shortage(context, actor)
        raise _NO_ROOM
    context.metrics.resume_phase("claim", time.perf_counter() - began)
    reached("resume.claimed")
    now, row = await context.look(uid)
    return now or claimed, row


async def _start(context: Context, actor: pb.Actor, row: WorkerRow | None) -> pb.Actor | None:
    """RUNNING, or None when the claim's worker turned out to be gone. Raises CallError."""
    began = time.perf_counter()
    try:
        await _ask_node(context, actor, row)
    except NodeError as e:
        await _refused(context, actor, e)
        return None
    context.metrics.resume_phase("start", time.perf_counter() - began)
    reached("resume.started")
    done = await context.store.write(changes.running(actor, now=context.clock()))
    reached("resume.running")
    if actor.status.HasField("previous_snapshot"):
        context.sweeper.wake()
    context.metrics.resumed()
    _log.info("actor resumed", extra=_fields(done))
    return done


async def _ask_node(context: Context, actor: pb.Actor, row: WorkerRow | None) -> None:
    if row is None:
        raise NodeError(grpc.StatusCode.UNAVAILABLE, "the worker is gone")
    ref = actor.actor_template
    template = await context.store.read(lambda tx: tx.templates.get(ref.atespace, ref.name))
    if template is None:
        raise not_found(f"the template of {records.actor_label(actor)}")
    status = actor.status
    snapshot = status.external_snapshot if status.HasField("external_snapshot") else None
    local = status.local_snapshot.snapshot_name
    timings = await context.nodes.start(
        row.worker.node_endpoint, handle_for(actor), template, snapshot, local
    )
    context.metrics.start_timings(timings)


async def _refused(context: Context, actor: pb.Actor, error: NodeError) -> None:
    """Returns to have the claim moved; otherwise raises what the caller is told."""
    uid = actor.metadata.uid
    _, row = await context.look(uid)
    verdict = decide.start_verdict(error.code, claim_good=context.placeable(actor, row))
    if verdict is Verdict.DOUBT:
        moved = await context.claim_turns_bad(uid)
        verdict = Verdict.MOVED if moved else Verdict.FATAL
    _log.warning(
        "start refused",
        extra=_fields(actor) | {"verdict": verdict.value, "error": str(error)},
    )
    if verdict is Verdict.MOVED:
        return
    if verdict is Verdict.RETRY:
        raise CallError(grpc.StatusCode.UNAVAILABLE, "the actor's node is unavailable; retry")
    await context.store.write(
        changes.crash(
            uid,
            f"start failed: {error}",
            # What its node kept is forgotten with this; the last stored snapshot has not been tried.
            snapshot_unusable=error.code == grpc.StatusCode.DATA_LOSS
            and not records.is_kept(actor),
            now=context.clock(),
        )
    )
    raise CallError(grpc.StatusCode.INTERNAL, f"{records.actor_label(actor)} failed to start")


async def abandon(context: Context, actor: pb.Actor, row: WorkerRow | None) -> None:
    """Whatever may be left of it on the lost worker must not run beside the new one."""
    if row is None:
        return
    with contextlib.suppress(NodeError):
        await context.nodes.terminate(
            row.worker.node_endpoint, handle_for(actor), seconds=_ABANDON_SECONDS
        )


def _not_resumable(actor: pb.Actor) -> str:
    word = records.state_word(actor.status.state)
    if actor.status.state == pb.ACTOR_STATE_CRASHED:
        return f"{records.actor_label(actor)} is CRASHED and cannot be resumed"
    return f"{records.actor_label(actor)} is {word}"


def _fields(actor: pb.Actor) -> dict[str, str]:
    return {
        "atespace": actor.metadata.atespace,
        "actor": actor.metadata.name,
        "worker": actor.status.worker_assignment.worker.name,
    }
