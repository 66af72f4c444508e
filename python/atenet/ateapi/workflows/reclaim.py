"""Reclaim: an actor that nobody uses is suspended, and its slot becomes another's.

Its operation lock makes two resumes take two victims, and the slot changes hands in the very
transaction that frees it. Whether the victim is in use its worker decides, not an old heartbeat.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from atenet.ateapi import records
from atenet.ateapi.failure import CallError
from atenet.ateapi.scheduler import fits_instead
from atenet.ateapi.store import HeldError, Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.workflows import changes
from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.stops import reached
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["reclaim"]

_log = logging.getLogger(__name__)
# Looked at in one attempt: the longest idle. The next attempt, a retry, looks again.
_CANDIDATES = 64
# Suspended in vain at most: they turned out to be in use, or their slot did not fit.
_ATTEMPTS = 4


class _Victim(NamedTuple):
    uid: str
    label: str
    idle_ms: int  # how long it has to have been idle


async def reclaim(context: Context, uid: str) -> pb.Actor | None:
    """The actor with the slot of one that was suspended for it; None if there is none to be had.

    The caller holds the operation lock of `uid`, and has found no room.
    """
    now = context.clock()
    victims = await context.store.read(lambda tx: list(_victims(tx, uid, now, context.heard_after)))
    attempts = 0
    for victim in victims:
        try:
            async with context.store.hold(victim.uid):
                claimed = await _instead_of(context, victim, uid)
        except HeldError:
            continue  # another operation has it, maybe another reclaim
        if claimed is not None:
            reached("reclaim.suspended")
            return claimed
        attempts += 1
        if attempts >= _ATTEMPTS:
            break
    return None


async def _instead_of(context: Context, victim: _Victim, uid: str) -> pb.Actor | None:
    got: list[pb.Actor | None] = []
    claim = changes.claim(
        uid, now=context.clock(), heard_after=context.heard_after, pack=context.pack
    )

    def heir(tx: Transaction) -> None:
        got[:] = [claim(tx)]  # a store may run a transaction again

    try:
        await suspend(context, victim.uid, if_idle_ms=victim.idle_ms, heir=heir)
    except CallError as e:
        _log.info("not reclaimed", extra={"actor": victim.label, "error": e.message})
        return None
    if not got or got[0] is None:
        return None
    _log.info(
        "suspended to make room",
        extra={"victim": victim.label, "actor": records.actor_label(got[0])},
    )
    context.metrics.reclaimed()
    return got[0]


def _victims(tx: Transaction, uid: str, now: float, heard_after: float) -> list[_Victim]:
    """Those whose slot would fit the actor, and who have been idle for long enough."""
    actor = tx.actors.by_uid(uid)
    if actor is None:
        return []
    template = tx.templates.get(actor.actor_template.atespace, actor.actor_template.name)
    if template is None:
        return []
    node = actor.status.assigned_node if records.is_kept(actor) else ""
    found = []
    for claim in tx.workers.idlest(now, heard_after, _CANDIDATES):
        row = tx.workers.get(claim.worker)
        elsewhere = node and row is not None and row.worker.node_name != node
        if row is not None and not elsewhere and fits_instead(row, claim, actor, template):
            victim = _victim(tx, claim, now)
            if victim is not None:
                found.append(victim)
    return found


def _victim(tx: Transaction, claim: ClaimRow, now: float) -> _Victim | None:
    actor = tx.actors.by_uid(claim.actor_uid)
    if actor is None or claim.idle_since is None:
        return None
    if actor.status.state not in (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED):
        return None
    template = tx.templates.get(actor.actor_template.atespace, actor.actor_template.name)
    if template is None or not template.HasField("reclaim_after"):
        return None
    idle_ms = template.reclaim_after.ToMilliseconds()
    if (now - claim.idle_since) * 1000 < idle_ms:
        return None
    return _Victim(claim.actor_uid, records.actor_label(actor), max(1, idle_ms))
