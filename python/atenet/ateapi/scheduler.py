"""Which worker takes an actor. Pure: rows in, a row out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from atenet.ateapi.store import WorkerRow
from atenet.proto import ateapi_pb2 as pb

__all__ = ["choose", "matches"]


def choose(
    rows: Iterable[WorkerRow], actor: pb.Actor, template: pb.ActorTemplate
) -> WorkerRow | None:
    """The first that fits, or None; looks at no more rows than it needs.

    `rows` are workers with room as the store lists them, the largest free share of slots first:
    spreading costs nothing while there is room and leaves each worker a share to burst into.
    """
    return next((row for row in rows if _fits(row.worker, actor, template)), None)


def matches(selector: pb.Selector, labels: Mapping[str, str]) -> bool:
    """Whether every wanted label is there with exactly that value."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items())


def _fits(worker: pb.Worker, actor: pb.Actor, template: pb.ActorTemplate) -> bool:
    return (
        worker.sandbox_class == template.sandbox_config.sandbox_class
        and matches(template.worker_selector, worker.labels)
        and matches(actor.worker_selector, worker.labels)
    )
