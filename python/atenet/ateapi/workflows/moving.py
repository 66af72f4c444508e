"""A paused actor that its node keeps, but has no slot for: stored, it may go on elsewhere."""

from __future__ import annotations

import grpc

from atenet.ateapi import records
from atenet.ateapi.failure import CallError
from atenet.ateapi.scheduler import choose
from atenet.ateapi.store import Transaction
from atenet.ateapi.workflows import changes
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.suspend import suspend

__all__ = ["move_elsewhere", "room_elsewhere"]


async def room_elsewhere(context: Context, uid: str) -> bool:
    """Whether some worker of another node would take it; also True when its node is lost, since then
    there is nothing to wait for."""
    heard_after = context.heard_after

    def query(tx: Transaction) -> tuple[str, bool]:
        actor = tx.actors.by_uid(uid)
        if actor is None:
            return "", False
        ref = actor.actor_template
        template = tx.templates.get(ref.atespace, ref.name)
        if template is None:
            return "", False
        found = choose(tx.workers.with_room(heard_after), actor, template)
        return actor.status.assigned_node, found is not None

    node, room = await context.store.read(query)
    return room or (node != "" and await context.node_endpoint(node) is None)


async def move_elsewhere(context: Context, uid: str) -> None:
    """PAUSED → SUSPENDED. Raises CallError; when its node is lost it is CRASHED."""
    actor, _ = await context.look(uid)
    if actor is None or not records.is_kept(actor):
        return
    node, label = actor.status.assigned_node, records.actor_label(actor)
    if await context.node_endpoint(node) is None:
        reason = f"node {node} is lost, and with it the memory that it kept of the paused actor"
        await context.store.write(changes.crash(uid, reason, now=context.clock()))
        raise CallError(grpc.StatusCode.INTERNAL, f"{label} was lost with its node; it is CRASHED")
    await suspend(context, uid)
