"""Suspend: name the snapshot, have the node store it, store that it is the actor's.

Recovery from a lost worker is the same workflow: its node still has the files. Whoever had memory to
keep has lost it, and is CRASHED.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError, aborted, not_found, precondition
from atenet.ateapi.nodes import Checkpointed, NodeError, handle_for
from atenet.ateapi.store import Transaction, WorkerRow
from atenet.ateapi.workflows import changes, decide, loss
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.decide import SuspendStep, Verdict
from atenet.ateapi.workflows.stops import reached
from atenet.proto import ateapi_pb2 as pb

__all__ = ["suspend"]

_log = logging.getLogger(__name__)


async def suspend(
    context: Context,
    uid: str,
    *,
    if_idle_ms: int = 0,
    heir: Callable[[Transaction], object] | None = None,
) -> pb.Actor:
    """Brings the actor to SUSPENDED from wherever it stopped. Raises CallError.

    `if_idle_ms`: only if nobody has used it for so long; it is RUNNING as before, and the call
    Aborted, when its worker knows better. `heir`: see `changes.suspended`.

    The caller holds the actor's operation lock.
    """
    actor, row = await context.look(uid)
    if actor is None:
        raise not_found("the actor")
    step = decide.suspend_step(actor.status.state, frozen=records.is_frozen(actor))
    if step is SuspendStep.DONE:
        return actor
    if step is SuspendStep.REFUSE:
        word = records.state_word(actor.status.state)
        raise precondition(f"{records.actor_label(actor)} is {word}")
    if step is SuspendStep.BEGIN:
        # A paused one has no ingress that could be in use.
        if_idle_ms = 0 if actor.status.HasField("local_snapshot") else if_idle_ms
        uri = context.snapshots.new_uri(actor.metadata)
        actor = await context.store.write(
            changes.begin_suspend(uid, uri, if_idle_ms=if_idle_ms, now=context.clock())
        )
        reached("suspend.begun")
    else:
        # Once somebody has asked for it, it no longer depends on how much the actor is used.
        if_idle_ms = min(if_idle_ms, actor.status.suspend_if_idle_ms)
    return await _checkpoint(context, actor, row, if_idle_ms, heir)


async def _checkpoint(
    context: Context,
    actor: pb.Actor,
    row: WorkerRow | None,
    if_idle_ms: int,
    heir: Callable[[Transaction], object] | None,
) -> pb.Actor:
    uid, ref = actor.metadata.uid, actor.actor_template
    template = await context.store.read(lambda tx: tx.templates.get(ref.atespace, ref.name))
    try:
        answer = await _ask_node(context, actor, row, template or pb.ActorTemplate(), if_idle_ms)
    except NodeError as e:
        await _refused(context, actor, e)
        raise AssertionError("a refusal raises") from e
    if not answer.stored:
        await _runs_on(context, actor, answer)
    reached("suspend.stored")
    if answer.memory_lost:
        await _lost(context, actor)
    template_uid = template.metadata.uid if template else ""
    done = await context.store.write(
        changes.suspended(uid, answer.scope, template_uid, now=context.clock(), heir=heir)
    )
    reached("suspend.done")
    context.sweeper.wake()
    _log.info(
        "actor suspended",
        extra={"atespace": actor.metadata.atespace, "actor": actor.metadata.name},
    )
    return done


async def _lost(context: Context, actor: pb.Actor) -> None:
    """Raises what the caller is told."""
    await context.store.write(loss.memory_lost(actor.metadata.uid, now=context.clock()))
    context.sweeper.wake()
    label = records.actor_label(actor)
    _log.warning("memory lost with its worker", extra={"actor": label})
    message = f"{label} lost its memory with its worker; it is CRASHED"
    raise CallError(grpc.StatusCode.INTERNAL, message)


async def _runs_on(context: Context, actor: pb.Actor, answer: Checkpointed) -> None:
    """Raises what the caller is told."""
    uid, label = actor.metadata.uid, records.actor_label(actor)
    if records.is_kept(actor):
        await context.store.write(changes.stay_paused(uid, now=context.clock()))
        raise precondition(f"{label} cannot be stored and stays PAUSED: {answer.kept_running}")
    await context.store.write(changes.keep_running(uid, now=context.clock()))
    context.sweeper.wake()
    if not answer.kept_running:
        raise aborted(f"{label} is in use")
    _log.warning("could not store", extra={"actor": label, "error": answer.kept_running})
    raise precondition(f"{label} cannot be stored and runs on: {answer.kept_running}")


async def _ask_node(
    context: Context,
    actor: pb.Actor,
    row: WorkerRow | None,
    template: pb.ActorTemplate,
    if_idle_ms: int,
) -> Checkpointed:
    scope = template.snapshot_config.content_scope or pb.SNAPSHOT_CONTENT_SCOPE_DATA
    if records.is_kept(actor):
        return await _ask_keeper(context, actor)
    if row is None:
        raise NodeError(grpc.StatusCode.NOT_FOUND, "the worker is not known any more")
    uri = actor.status.in_progress_snapshot_uri
    try:
        return await context.nodes.checkpoint(
            row.worker.node_endpoint,
            handle_for(actor),
            uri,
            scope,
            template_uid=template.metadata.uid,
            if_idle_ms=if_idle_ms,
        )
    except NodeError as e:
        good = context.claim_good(actor, row)
        given_up = context.clock() - row.heartbeat_at > context.node_timeout
        verdict = decide.checkpoint_verdict(e.code, claim_good=good, node_given_up=given_up)
        if verdict is not Verdict.MOVED and verdict is not Verdict.DOUBT:
            raise
        return await _ask_successor(context, actor, uri, scope, e)


async def _ask_keeper(context: Context, actor: pb.Actor) -> Checkpointed:
    """The node that keeps a paused actor."""
    node, name = actor.status.assigned_node, actor.status.local_snapshot.snapshot_name
    endpoint = await context.node_endpoint(node)
    if endpoint is None:
        raise NodeError(grpc.StatusCode.DATA_LOSS, f"node {node}, which kept it, is lost")
    return await context.nodes.checkpoint(
        endpoint,
        handle_for(actor),
        actor.status.in_progress_snapshot_uri,
        pb.SNAPSHOT_CONTENT_SCOPE_FULL,
        local=name,
    )


async def _ask_successor(
    context: Context, actor: pb.Actor, uri: str, scope: pb.SnapshotContentScope, first: NodeError
) -> Checkpointed:
    """An agent that knows only the worker's present epoch can still store what is on disk."""
    if not await context.claim_turns_bad(actor.metadata.uid):
        raise first
    _, row = await context.look(actor.metadata.uid)
    if row is None or row.worker.epoch == actor.status.worker_assignment.worker_epoch:
        raise first
    handle = handle_for(actor, epoch=row.worker.epoch)
    answer = await context.nodes.checkpoint(row.worker.node_endpoint, handle, uri, scope)
    full = scope == pb.SNAPSHOT_CONTENT_SCOPE_FULL
    return replace(answer, memory_lost=answer.memory_lost or full)


async def _refused(context: Context, actor: pb.Actor, error: NodeError) -> None:
    """Raises what the caller is told; stores CRASHED first if it is for good."""
    uid = actor.metadata.uid
    if records.is_kept(actor) and decide.is_passing(error.code):
        await context.store.write(changes.stay_paused(uid, now=context.clock()))
        raise CallError(grpc.StatusCode.UNAVAILABLE, "the actor's node is unavailable; retry")
    _, row = await context.look(uid)
    given_up = row is None or context.clock() - row.heartbeat_at > context.node_timeout
    verdict = decide.checkpoint_verdict(
        error.code, claim_good=context.claim_good(actor, row), node_given_up=given_up
    )
    label = records.actor_label(actor)
    _log.warning("checkpoint refused", extra={"actor": label, "error": str(error)})
    if verdict is Verdict.RETRY:
        raise CallError(grpc.StatusCode.UNAVAILABLE, "the actor's node is unavailable; retry")
    await context.store.write(changes.crash(uid, f"snapshot failed: {error}", now=context.clock()))
    raise CallError(grpc.StatusCode.INTERNAL, f"{label} could not be stored; it is CRASHED")
