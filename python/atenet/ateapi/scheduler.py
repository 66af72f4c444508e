"""Which worker takes an actor, and why none does. Pure: rows in, a row out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from atenet.ateapi.store import WorkerRow
from atenet.ateapi.store.interface import CPU, MEMORY, ClaimRow
from atenet.proto import ateapi_pb2 as pb

__all__ = ["choose", "fits_instead", "matches", "obstacles", "on_node"]

_RESOURCES = {CPU: "CPU", MEMORY: "memory"}


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


def obstacles(
    rows: Iterable[WorkerRow],
    actor: pb.Actor,
    template: pb.ActorTemplate,
    *,
    heard_after: float,
    node: str = "",
) -> dict[str, int]:
    """What keeps the actor off all those workers: how many are kept by what, the first that applies
    to each; those that would have to change first, first. `node`: it may run only there."""
    return dict(
        Counter(
            next(_against(row, actor, template, heard_after, node), "taken meanwhile")
            for row in rows
        )
    )


def _against(
    row: WorkerRow, actor: pb.Actor, template: pb.ActorTemplate, heard_after: float, node: str
) -> Iterator[str]:
    worker, capacity = row.worker, row.worker.status.capacity
    if row.lost or row.heartbeat_at <= heard_after:
        yield "not heard of"
    if node and worker.node_name != node:
        yield "not on the node that keeps the actor"
    if not _runs_class(worker, template):
        yield "no such sandbox class"
    if not matches(template.worker_selector, worker.labels):
        yield "not selected by the template"
    if not matches(actor.worker_selector, worker.labels):
        yield "not selected by the actor"
    if worker.status.state != pb.WORKER_STATE_ACTIVE:
        yield "draining"
    if row.allocated >= capacity.actors:
        yield "no slot free"
    for key in _lacking(row, template):
        yield f"not enough {_RESOURCES[key]}"


def matches(selector: pb.Selector, labels: Mapping[str, str]) -> bool:
    """Whether every wanted label is there with exactly that value."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items())


def _may_run(worker: pb.Worker, actor: pb.Actor, template: pb.ActorTemplate) -> bool:
    return (
        _runs_class(worker, template)
        and matches(template.worker_selector, worker.labels)
        and matches(actor.worker_selector, worker.labels)
    )


def _runs_class(worker: pb.Worker, template: pb.ActorTemplate) -> bool:
    classes = worker.sandbox_classes or [worker.sandbox_class]
    return template.sandbox_config.sandbox_class in classes


def _has_resources(
    row: WorkerRow, template: pb.ActorTemplate, freed_cpu: int = 0, freed_memory: int = 0
) -> bool:
    return next(_lacking(row, template, freed_cpu, freed_memory), None) is None


def _lacking(
    row: WorkerRow, template: pb.ActorTemplate, freed_cpu: int = 0, freed_memory: int = 0
) -> Iterator[str]:
    """A worker that does not say how much it has of something is only counted by its slots."""
    capacity = row.worker.status.capacity.resources
    wanted = template.resources
    for key, in_use, asked in (
        (CPU, row.allocated_cpu - freed_cpu, wanted.cpu_milli),
        (MEMORY, row.allocated_memory - freed_memory, wanted.memory_bytes),
    ):
        if key in capacity and in_use + asked > capacity[key]:
            yield key
