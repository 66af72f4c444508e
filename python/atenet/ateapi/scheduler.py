"""Which worker takes an actor. Pure: rows in, a row out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from atenet.ateapi.store import WorkerRow
from atenet.ateapi.store.interface import CPU, MEMORY, ClaimRow
from atenet.proto import ateapi_pb2 as pb

__all__ = ["choose", "fits_instead", "matches", "on_node"]


def choose(
    rows: Iterable[WorkerRow], actor: pb.Actor, template: pb.ActorTemplate
) -> WorkerRow | None:
    """The first that fits, or None; looks at no more rows than it needs.

    `rows` are workers with a free slot in the store's order: to spread, the largest free share of
    slots first, which costs nothing while there is room and leaves each worker a share to burst
    into; to pack, the smallest.
    """
    return next(
        (
            row
            for row in rows
            if _may_run(row.worker, actor, template) and _has_resources(row, template)
        ),
        None,
    )


def on_node(rows: Iterable[WorkerRow], node: str) -> Iterable[WorkerRow]:
    """Those on that node; all when it is empty."""
    return (row for row in rows if not node or row.worker.node_name == node)


def fits_instead(
    row: WorkerRow, claim: ClaimRow, actor: pb.Actor, template: pb.ActorTemplate
) -> bool:
    """Whether it could run there if that claim were given up."""
    return _may_run(row.worker, actor, template) and _has_resources(
        row, template, freed_cpu=claim.cpu_milli, freed_memory=claim.memory_bytes
    )


def matches(selector: pb.Selector, labels: Mapping[str, str]) -> bool:
    """Whether every wanted label is there with exactly that value."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items())


def _may_run(worker: pb.Worker, actor: pb.Actor, template: pb.ActorTemplate) -> bool:
    return (
        template.sandbox_config.sandbox_class in (worker.sandbox_classes or [worker.sandbox_class])
        and matches(template.worker_selector, worker.labels)
        and matches(actor.worker_selector, worker.labels)
    )


def _has_resources(
    row: WorkerRow, template: pb.ActorTemplate, freed_cpu: int = 0, freed_memory: int = 0
) -> bool:
    """A worker that does not say how much it has of something is only counted by its slots."""
    capacity = row.worker.status.capacity.resources
    wanted = template.resources
    return all(
        key not in capacity or in_use + asked <= capacity[key]
        for key, in_use, asked in (
            (CPU, row.allocated_cpu - freed_cpu, wanted.cpu_milli),
            (MEMORY, row.allocated_memory - freed_memory, wanted.memory_bytes),
        )
    )
