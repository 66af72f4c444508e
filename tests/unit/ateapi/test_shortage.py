"""What keeps an actor off the workers there are: one line for operators, not one for each attempt."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from atenet.ateapi.scheduler import obstacles
from atenet.ateapi.store import WorkerRow
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, resume

NODE, HEARD_AFTER = "node-1", 100.0


def row(
    *,
    allocated: int = 0,
    heartbeat_at: float = HEARD_AFTER + 1,
    lost: bool = False,
    node: str = NODE,
    classes: tuple[str, ...] = ("process",),
    state: int = pb.WORKER_STATE_ACTIVE,
    resources: dict[str, int] | None = None,
    used: int = 0,
    **labels: str,
) -> WorkerRow:
    """A worker of two slots; `used`: thousandths of a core, and bytes."""
    worker = pb.Worker(
        node_name=node,
        sandbox_classes=classes,
        labels={"disk": "ssd", "team": "a", **labels},
        status=pb.WorkerStatus(
            state=state,  # type: ignore[arg-type]
            capacity=pb.WorkerResources(resources=resources or {}, actors=2),
        ),
    )
    return WorkerRow(worker, allocated, heartbeat_at, lost, used, used)


def actor() -> pb.Actor:
    return pb.Actor(worker_selector=pb.Selector(match_labels={"team": "a"}))


def template() -> pb.ActorTemplate:
    return pb.ActorTemplate(
        sandbox_config=pb.SandboxConfig(sandbox_class="process"),
        worker_selector=pb.Selector(match_labels={"disk": "ssd"}),
        resources=pb.Resources(cpu_milli=500, memory_bytes=500),
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"lost": True}, "not heard of"),
        ({"heartbeat_at": HEARD_AFTER}, "not heard of"),
        ({"node": "node-2"}, "not on the node that keeps the actor"),
        ({"classes": ("gvisor",)}, "no such sandbox class"),
        ({"disk": "hdd"}, "not selected by the template"),
        ({"team": "b"}, "not selected by the actor"),
        ({"state": pb.WORKER_STATE_DRAINING}, "draining"),
        ({"allocated": 2}, "no slot free"),
        ({"resources": {"cpu_milli": 600}, "used": 101}, "not enough CPU"),
        ({"resources": {"memory_bytes": 600}, "used": 101}, "not enough memory"),
        ({"resources": {"cpu_milli": 600, "memory_bytes": 600}, "used": 100}, "taken meanwhile"),
    ],
)
def test_each_worker_is_counted_by_what_keeps_the_actor_off(
    given: dict[str, Any], why: str
) -> None:
    rows = [row(**given), row(**given)]
    found = obstacles(rows, actor(), template(), heard_after=HEARD_AFTER, node=NODE)
    assert found == {why: 2}


def test_a_worker_with_several_obstacles_is_counted_once() -> None:
    rows = [row(lost=True, allocated=2, disk="hdd"), row(allocated=2, disk="hdd"), row(allocated=2)]
    found = obstacles(rows, actor(), template(), heard_after=HEARD_AFTER)
    assert found == {
        "not heard of": 1,
        "not selected by the template": 1,
        "no slot free": 1,
    }


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    """Fills up as lines are logged."""
    found: list[dict[str, Any]] = []

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "no worker takes the actor":
                found.append(vars(record))

    logger, handler = logging.getLogger("atenet.ateapi.workflows.shortage"), Told()
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


async def test_an_operator_reads_why_once_for_many_attempts(
    plane: ControlPlane, told: list[dict[str, Any]]
) -> None:
    await plane.seed("a", "b", "c")
    for name in ("a", "b"):
        assert (await code_of(plane.control().ResumeActor(resume(name))))[0] == "RESOURCE_EXHAUSTED"
    assert [(each["actor"], each["template"], each["workers"]) for each in told] == [
        ("actor team-a/a", "team-a/tpl", "none registered")
    ]


async def test_another_template_is_told_of_beside(
    plane: ControlPlane, told: list[dict[str, Any]]
) -> None:
    await plane.register(slots=1)
    await plane.seed("a", "b")
    await plane.seed("c", atespace="team-b")
    await plane.control().ResumeActor(resume("a"))
    assert (await code_of(plane.control().ResumeActor(resume("b"))))[0] == "RESOURCE_EXHAUSTED"
    other = resume("c", "team-b")
    assert (await code_of(plane.control().ResumeActor(other)))[0] == "RESOURCE_EXHAUSTED"
    assert [(each["template"], each["workers"]) for each in told] == [
        ("team-a/tpl", {"no slot free": 1}),
        ("team-b/tpl", {"no slot free": 1}),
    ]
