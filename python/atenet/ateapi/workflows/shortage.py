"""Why an actor found no room, told to operators: what its caller is told is one line of the contract."""

from __future__ import annotations

import logging
import math

from atenet.ateapi import records
from atenet.ateapi.scheduler import obstacles
from atenet.ateapi.store import Transaction, every_worker
from atenet.ateapi.workflows.context import Context
from atenet.proto import ateapi_pb2 as pb

__all__ = ["tell_shortage"]

_log = logging.getLogger(__name__)
# Callers try again, each of them; one line says it for all actors of a template.
_TELL_SECONDS = 10.0


async def tell_shortage(context: Context, actor: pb.Actor) -> None:
    """Logs what keeps the actor off the workers that there are, if that was not just told of its template."""
    ref, now = actor.actor_template, context.clock()
    label = f"{ref.atespace}/{ref.name}"
    if now - context.shortages.get(label, -math.inf) < _TELL_SECONDS:
        return
    _forget(context.shortages, now)
    context.shortages[label] = now
    node = actor.status.assigned_node if records.is_kept(actor) else ""
    heard_after = context.heard_after

    def query(tx: Transaction) -> dict[str, int] | None:
        template = tx.templates.get(ref.atespace, ref.name)
        if template is None:
            return None
        return obstacles(every_worker(tx), actor, template, heard_after=heard_after, node=node)

    found = await context.store.read(query)
    if found is None:  # removed meanwhile: another reason, which the next attempt is told
        return
    _log.warning(
        "no worker takes the actor",
        extra={
            "actor": records.actor_label(actor),
            "template": label,
            "workers": found or "none registered",
        },
    )


def _forget(shortages: dict[str, float], now: float) -> None:
    for label in [each for each, told in shortages.items() if now - told >= _TELL_SECONDS]:
        del shortages[label]
