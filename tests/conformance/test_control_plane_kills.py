"""C-02: ateapi is killed after every single stored step of every workflow, and nothing is lost.

Each case runs a real ateapi that kills itself at the point, starts it anew, leaves it alone until
the actors are at rest, and then asks the same again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from atenet.ateapi.workflows.stops import POINTS
from atenet.proto import ateapi_pb2 as pb
from google.protobuf.duration_pb2 import Duration

from tests.support.control_plane import (
    ControlPlane,
    actor,
    code_of,
    control_plane,
    pause,
    ref,
    resume,
    revert,
    suspend,
    template,
)
from tests.support.eventually import eventually

# Twice the template's reclaim_after, which is longer than any test takes.
_LONG_MS = 7_200_000
_MOVING = {"RESUMING", "SUSPENDING", "PAUSING", "DELETING", "REVERTING"}


@dataclass(frozen=True)
class Workflow:
    """`before`: how actor `a` gets to where the workflow starts; `after`: its state at the end,
    None when it is gone; `slots`: how many are taken then."""

    before: tuple[Callable[[Any], Awaitable[Any]], ...]
    call: Callable[[Any], Awaitable[Any]]
    after: str | None
    slots: int


def _resume(control: Any) -> Any:
    return control.ResumeActor(resume("a"))


def _suspend(control: Any) -> Any:
    return control.SuspendActor(suspend("a"))


def _pause(control: Any) -> Any:
    return control.PauseActor(pause("a"))


def _revert(control: Any) -> Any:
    return control.RevertActor(revert("a"))


def _delete(control: Any) -> Any:
    return control.DeleteActor(pb.DeleteActorRequest(actor=ref("a"), any_state=True))


def _other_takes_the_slot(control: Any) -> Any:
    return control.ResumeActor(resume("b"))


WORKFLOWS = {
    "resume": Workflow((), _resume, "RUNNING", 1),
    "suspend": Workflow((_resume,), _suspend, "SUSPENDED", 0),
    "pause": Workflow((_resume,), _pause, "PAUSED", 1),
    "thaw": Workflow((_resume, _pause), _resume, "RUNNING", 1),
    "revert": Workflow((_resume, _suspend, _resume), _revert, "SUSPENDED", 0),
    "delete": Workflow((_resume, _suspend, _resume), _delete, None, 0),
    "reclaim": Workflow((_other_takes_the_slot,), _resume, "RUNNING", 1),
}


CASES = [
    *((point.partition(".")[0], point) for point in POINTS),
    # A reclaim is another actor's suspend, and then the rest of a resume.
    *(("reclaim", point) for point in POINTS if point.startswith("suspend.")),
    *(("reclaim", point) for point in ("resume.started", "resume.running")),
]


@pytest.mark.conformance("C-02")
@pytest.mark.parametrize(("name", "point"), CASES)
async def test_killed_at_any_point_a_plain_retry_succeeds(
    tmp_path: Path, name: str, point: str
) -> None:
    workflow = WORKFLOWS[name]
    async with control_plane(tmp_path) as plane:
        async with plane.in_its_own_process():
            await _seed(plane)
            for step in workflow.before:
                await step(plane.control())
        async with plane.in_its_own_process(stop_at=point):
            await plane.register(slots=1, idle_ms=_LONG_MS)
            assert (await code_of(workflow.call(plane.control())))[0] == "UNAVAILABLE"
            assert await plane.killed() == -9
        async with plane.in_its_own_process():
            await plane.register(slots=1, idle_ms=_LONG_MS)
            await _at_rest(plane)
            if workflow.after is None:
                assert (await code_of(workflow.call(plane.control())))[0] == "NOT_FOUND"
                await eventually(lambda: not list((tmp_path / "snapshots").glob("*/*/*")))
            else:
                await workflow.call(plane.control())
                assert await plane.state("a") == workflow.after
            await _books_are_right(plane, workflow)
            if name == "suspend":
                stored = (await plane.get("a")).status.external_snapshot.snapshot_uri
                assert _checkpoints(plane) == {stored}, "one name from the first step to the last"


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_every_workflow_has_stop_points(workflow: str) -> None:
    assert [p for p in POINTS if p.startswith(f"{workflow}.")]


async def _seed(plane: ControlPlane) -> None:
    control = plane.control()
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="team-a"))
    await control.CreateAtespace(pb.CreateAtespaceRequest(atespace=space))
    made = template()
    made.reclaim_after.CopyFrom(Duration(seconds=3600))
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=made))
    for name in ("a", "b"):
        await control.CreateActor(pb.CreateActorRequest(actor=actor(name)))
    await plane.register(slots=1)


async def _at_rest(plane: ControlPlane) -> None:
    async def resting() -> bool:
        listed = (await plane.control().ListActors(pb.ListActorsRequest())).actors
        return not _MOVING & {pb.ActorState.Name(a.status.state)[12:] for a in listed}

    await eventually(resting)


async def _books_are_right(plane: ControlPlane, workflow: Workflow) -> None:
    """Slots taken = actors that have one = actors that the node hosts, no more and no less."""
    control = plane.control()
    listed = (await control.ListWorkers(pb.ListWorkersRequest())).workers
    assert [w.status.allocated.actors for w in listed] == [workflow.slots]
    request = pb.ListWorkerActorAssignmentsRequest(worker=pb.ObjectRef(name="worker-1"))
    assigned = (await control.ListWorkerActorAssignments(request)).actors
    assert {a.metadata.uid for a in assigned} == plane.atelet.hosted["worker-1"]
    assert len(assigned) == workflow.slots
    frozen = {a.metadata.uid for a in assigned if a.status.state == pb.ACTOR_STATE_PAUSED}
    assert plane.atelet.frozen == frozen
    if workflow.slots:
        # The pool's one slot is taken: nobody else gets it while its holder is not idle.
        await plane.register(slots=1, busy=True)
        code, _ = await code_of(control.ResumeActor(resume("b")))
        assert code == "RESOURCE_EXHAUSTED"
    else:
        assert (await control.ResumeActor(resume("b"))).resumed


def _checkpoints(plane: ControlPlane) -> set[str]:
    return {c.request.snapshot_uri for c in plane.atelet.calls if c.method == "Checkpoint"}
