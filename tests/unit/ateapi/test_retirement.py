"""Idle actors free their slots: by themselves, for others, and when their worker drains."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import (
    ControlPlane,
    actor,
    code_of,
    pause,
    resume,
    suspend,
    template,
)
from tests.support.eventually import eventually

Codes = grpc.StatusCode


async def _seed(
    plane: ControlPlane, *names: str, idle: float = 0, reclaim: float = 0
) -> dict[str, str]:
    """Actors of a template with these limits (seconds; 0: none); their uids by name."""
    control = plane.control()
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="team-a"))
    await control.CreateAtespace(pb.CreateAtespaceRequest(atespace=space))
    made = template()
    if idle:
        made.idle_timeout.FromTimedelta(timedelta(seconds=idle))
    if reclaim:
        made.reclaim_after.FromTimedelta(timedelta(seconds=reclaim))
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=made))
    uids = {}
    for name in names:
        created = await control.CreateActor(pb.CreateActorRequest(actor=actor(name)))
        uids[name] = created.metadata.uid
    return uids


# ---------------------------------------------------------------- idle_timeout


async def test_an_actor_idle_for_its_templates_timeout_is_suspended(plane: ControlPlane) -> None:
    await _seed(plane, "a", "b", idle=60)
    await plane.register(slots=1)
    await plane.control().ResumeActor(resume("a"))
    await plane.register(slots=1, idle_ms=60_000)
    await plane.until("a", "SUSPENDED")
    assert plane.atelet.last("Checkpoint").if_idle_ms == 60_000
    assert (await plane.control().ResumeActor(resume("b"))).resumed, "its slot is free"
    assert await plane.metric("ateapi_actors_idled_total") == 1


@pytest.mark.parametrize(
    ("idle", "heartbeat"),
    [
        (60, {"idle_ms": 59_999}),
        (60, {"busy": True, "idle_ms": 0}),
        (60, {"busy": True, "idle_ms": 600_000}),
        (60, {}),
        (0, {"idle_ms": 1 << 40}),
    ],
)
async def test_any_other_runs_on(
    plane: ControlPlane, idle: float, heartbeat: dict[str, int]
) -> None:
    await _seed(plane, "a", idle=idle)
    await plane.register()
    running = (await plane.control().ResumeActor(resume("a"))).actor
    for _ in range(3):
        await plane.register(**heartbeat)
    await plane.api_is_quiet()
    assert await plane.get("a") == running
    assert plane.atelet.count("Checkpoint") == 0


async def test_a_request_that_came_in_meanwhile_keeps_it_running(plane: ControlPlane) -> None:
    uids = await _seed(plane, "a", idle=1)
    await plane.register()
    before = (await plane.control().ResumeActor(resume("a"))).actor
    plane.atelet.in_use.add(uids["a"])
    await plane.register(idle_ms=5_000)
    await plane.atelet.arrived("Checkpoint")
    after = await plane.until("a", "RUNNING")
    assert after.status == before.status
    assert not list((plane.root / "snapshots").glob("*/*/*"))


async def test_whoever_asks_for_a_suspend_gets_it_though_it_was_begun_for_idleness(
    plane: ControlPlane,
) -> None:
    uids = await _seed(plane, "a", idle=1)
    await plane.register()
    await plane.control().ResumeActor(resume("a"))
    plane.atelet.script("Checkpoint", Codes.UNAVAILABLE)
    await plane.register(idle_ms=5_000)
    await plane.until("a", "SUSPENDING")
    plane.atelet.in_use.add(uids["a"])

    async def suspended() -> bool:
        with contextlib.suppress(grpc.aio.AioRpcError):  # Aborted while the watch goes on with it
            await plane.control().SuspendActor(suspend("a"))
            return True
        return False

    await eventually(suspended)
    assert await plane.state("a") == "SUSPENDED"


async def test_a_paused_actor_is_not_suspended_for_idleness(plane: ControlPlane) -> None:
    await _seed(plane, "a", idle=1)
    await plane.register()
    await plane.control().ResumeActor(resume("a"))
    late = plane.registration(idle_ms=5_000)
    await plane.control().PauseActor(pause("a"))
    await plane.worker_service().RegisterWorker(late)
    await plane.api_is_quiet()
    assert await plane.state("a") == "PAUSED"


# ---------------------------------------------------------------- reclaim_after


async def test_a_resume_takes_the_slot_of_the_longest_idle(plane: ControlPlane) -> None:
    uids = await _seed(plane, "a", "b", "c", reclaim=10)
    await plane.register("worker-1", slots=1)
    await plane.register("worker-2", slots=1)
    for name in ("a", "b"):
        await plane.control().ResumeActor(resume(name))
    where = {n: (await plane.get(n)).status.worker_assignment.worker.name for n in ("a", "b")}
    await plane.register(where["a"], slots=1, idle_ms=20_000)
    await plane.register(where["b"], slots=1, idle_ms=30_000)
    answer = await plane.control().ResumeActor(resume("c"))
    assert answer.actor.status.worker_assignment.worker.name == where["b"]
    assert [await plane.state(n) for n in ("a", "b", "c")] == ["RUNNING", "SUSPENDED", "RUNNING"]
    assert plane.atelet.last("Checkpoint").if_idle_ms == 10_000
    assert plane.atelet.hosted[where["b"]] == {uids["c"]}
    assert await plane.metric("ateapi_actors_reclaimed_total") == 1


@pytest.mark.parametrize(
    ("reclaim", "heartbeat"),
    [
        *((3600, {"busy": True}), (3600, {"idle_ms": 1_800_000}), (3600, {})),
        (0, {"idle_ms": 600_000_000}),
    ],
)
async def test_nobody_else_is_made_to_leave(
    plane: ControlPlane, reclaim: float, heartbeat: dict[str, int]
) -> None:
    await _seed(plane, "a", "b", reclaim=reclaim)
    await plane.register(slots=1)
    await plane.control().ResumeActor(resume("a"))
    await plane.register(slots=1, **heartbeat)
    assert (await code_of(plane.control().ResumeActor(resume("b"))))[0] == "RESOURCE_EXHAUSTED"
    assert await plane.state("a") == "RUNNING"
    assert plane.atelet.count("Checkpoint") == 0


async def test_one_that_turns_out_to_be_in_use_stays_and_the_next_one_leaves(
    plane: ControlPlane,
) -> None:
    uids = await _seed(plane, "a", "b", "c", reclaim=10)
    await plane.register(slots=2)
    for name in ("a", "b"):
        await plane.control().ResumeActor(resume(name))
    request = plane.registration(slots=2, idle_ms=20_000)
    first = request.activity[0].actor_uid
    request.activity[0].idle_ms = 30_000
    await plane.worker_service().RegisterWorker(request)
    plane.atelet.in_use.add(first)
    assert (await plane.control().ResumeActor(resume("c"))).resumed
    name = next(n for n, uid in uids.items() if uid == first)
    assert await plane.state(name) == "RUNNING"
    assert sorted(plane.atelet.hosted["worker-1"]) == sorted([first, uids["c"]])


async def test_a_paused_actor_makes_room_when_it_has_been_so_for_long_enough(
    plane: ControlPlane,
) -> None:
    await _seed(plane, "a", "b", reclaim=1)
    await plane.register(slots=1)
    await plane.control().ResumeActor(resume("a"))
    await plane.control().PauseActor(pause("a"))

    async def resumed() -> bool:
        try:
            await plane.control().ResumeActor(resume("b"))
        except grpc.aio.AioRpcError:
            return False
        return True

    await eventually(resumed)
    assert await plane.state("a") == "SUSPENDED"


async def test_a_late_heartbeat_does_not_age_a_pause(plane: ControlPlane) -> None:
    await _seed(plane, "a", "b", reclaim=10)
    await plane.register(slots=1)
    await plane.control().ResumeActor(resume("a"))
    late = plane.registration(slots=1, idle_ms=3_600_000)
    await plane.control().PauseActor(pause("a"))
    await plane.worker_service().RegisterWorker(late)
    assert (await code_of(plane.control().ResumeActor(resume("b"))))[0] == "RESOURCE_EXHAUSTED"
    assert await plane.state("a") == "PAUSED"


@pytest.mark.conformance("C-04")
async def test_two_resumes_never_take_the_same_slot(plane: ControlPlane) -> None:
    names = [f"n{i}" for i in range(20)]
    await _seed(plane, "a", "b", *names, reclaim=10)
    await plane.register(slots=2)
    for name in ("a", "b"):
        await plane.control().ResumeActor(resume(name))
    await plane.register(slots=2, idle_ms=20_000)
    release = plane.atelet.stall("Checkpoint")
    control = plane.control()
    asked = [asyncio.ensure_future(control.ResumeActor(resume(name))) for name in names]
    await eventually(lambda: sum(call.done() for call in asked) == len(names) - 2)
    release()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    refused = [o for o in outcomes if isinstance(o, grpc.aio.AioRpcError)]
    assert {o.code() for o in refused} == {Codes.RESOURCE_EXHAUSTED}
    assert len(names) - len(refused) == 2
    assert plane.atelet.count("Checkpoint") == 2
    assert len(plane.atelet.hosted["worker-1"]) == 2


# ---------------------------------------------------------------- drain, placement, resources


async def test_a_draining_worker_becomes_empty_idle_actors_first(plane: ControlPlane) -> None:
    uids = await _seed(plane, "a", "b", "c")
    await plane.register(slots=4)
    for name in ("a", "b", "c"):
        await plane.control().ResumeActor(resume(name))
    await plane.control().PauseActor(pause("c"))
    request = plane.registration(slots=4, idle_ms=0)
    for activity in request.activity:
        activity.busy = activity.actor_uid == uids["b"]
    await plane.worker_service().RegisterWorker(request)
    await plane.control().DrainWorker(pb.DrainWorkerRequest(worker=pb.ObjectRef(name="worker-1")))
    await plane.until("a", "SUSPENDED")
    await plane.until("c", "SUSPENDED")
    assert await plane.state("b") == "RUNNING", "it is in use"
    request.activity[0].CopyFrom(pb.ActorActivity(actor_uid=uids["b"], idle_ms=10))
    await plane.worker_service().RegisterWorker(request)
    await plane.until("b", "SUSPENDED")
    await plane.register("worker-2")
    moved = (await plane.control().ResumeActor(resume("b"))).actor
    assert moved.status.worker_assignment.worker.name == "worker-2"


async def test_an_actor_in_use_leaves_a_draining_worker_when_time_is_up(
    plane_that_waits_briefly: ControlPlane,
) -> None:
    plane = plane_that_waits_briefly
    uids = await _seed(plane, "a")
    await plane.register()
    await plane.control().ResumeActor(resume("a"))
    plane.atelet.in_use.add(uids["a"])
    await plane.register(busy=True)
    await plane.control().DrainWorker(pb.DrainWorkerRequest(worker=pb.ObjectRef(name="worker-1")))
    await plane.until("a", "SUSPENDED")
    assert plane.atelet.last("Checkpoint").if_idle_ms == 0


@pytest.mark.parametrize(("placement", "workers"), [("spread", 2), ("pack", 1)])
async def test_placement_spreads_or_packs(
    plane_placing: ControlPlane, placement: str, workers: int
) -> None:
    del placement  # the fixture's
    plane = plane_placing
    names = ["a", "b", "c", "d"]
    await _seed(plane, *names)
    for worker in ("worker-1", "worker-2"):
        await plane.register(worker, slots=4)
    for name in names:
        await plane.control().ResumeActor(resume(name))
    used = [uids for uids in plane.atelet.hosted.values() if uids]
    assert len(used) == workers
    assert {len(uids) for uids in used} == {len(names) // workers}


async def test_a_worker_takes_no_more_than_it_has_memory_for(plane: ControlPlane) -> None:
    await _seed(plane)
    control = plane.control()
    big = template(name="big")
    big.resources.memory_bytes = 400
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=big))
    for name in ("a", "b", "c"):
        made = actor(name)
        made.actor_template.name = "big"
        await control.CreateActor(pb.CreateActorRequest(actor=made))
    await plane.register(slots=10, resources={"memory_bytes": 1000})
    await control.ResumeActor(resume("a"))
    await control.ResumeActor(resume("b"))
    assert (await code_of(control.ResumeActor(resume("c"))))[0] == "RESOURCE_EXHAUSTED"
    worker = await control.GetWorker(pb.GetWorkerRequest(worker=pb.ObjectRef(name="worker-1")))
    assert dict(worker.status.allocated.resources) == {"memory_bytes": 800}
    await control.SuspendActor(suspend("a"))
    assert (await control.ResumeActor(resume("c"))).resumed
