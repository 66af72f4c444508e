"""A worker's heartbeats come through its node's agent: their silence may be the agent's alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, control_plane, resume
from tests.support.eventually import eventually


@pytest.fixture
async def impatient(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """Workers are in doubt after a tenth of a second; `a` runs on one, `b` on none."""
    async with control_plane(tmp_path, worker_timeout=0.1) as made, made.in_process():
        made.atelet.alive = {"worker-1"}
        await made.seed("a", "b")
        await made.register()
        yield made


async def _doubted(plane: ControlPlane, times: int) -> None:
    """Waits until the node was asked that often from now on."""
    before = plane.atelet.count("LookUpWorker")

    async def asked() -> bool:
        return plane.atelet.count("LookUpWorker") >= before + times

    await eventually(asked, 20)


@pytest.mark.parametrize("agent", ["says that it lives", "is away"])
async def test_a_silent_worker_keeps_its_actors_while_it_may_live(
    impatient: ControlPlane, agent: str
) -> None:
    running = (await impatient.control().ResumeActor(resume("a"))).actor
    if agent == "is away":
        impatient.atelet.always("LookUpWorker", grpc.StatusCode.UNAVAILABLE)
    await _doubted(impatient, 3)
    assert await impatient.get("a") == running
    assert impatient.atelet.count("Checkpoint") == 0
    # Nothing new is placed on it, and when it speaks again it is as before.
    refused = await impatient.control().ListWorkers(pb.ListWorkersRequest())
    assert [w.metadata.name for w in refused.workers] == ["worker-1"]
    await impatient.register()
    assert (await impatient.control().ResumeActor(resume("b"))).actor.status.HasField(
        "worker_assignment"
    )
    assert await impatient.get("a") == running


@pytest.mark.parametrize("agent", ["says that it is gone", "cannot be asked that"])
async def test_a_worker_whose_node_does_not_know_it_to_live_is_lost(
    impatient: ControlPlane, agent: str
) -> None:
    await impatient.control().ResumeActor(resume("a"))
    await _doubted(impatient, 1)
    if agent == "cannot be asked that":
        impatient.atelet.always("LookUpWorker", grpc.StatusCode.UNIMPLEMENTED)
    else:
        impatient.atelet.alive.clear()
    await impatient.until("a", "SUSPENDED")
    assert impatient.atelet.count("Checkpoint") == 1


async def test_a_node_that_is_silent_for_the_node_s_time_has_lost_its_workers(
    tmp_path: Path,
) -> None:
    async with (
        control_plane(tmp_path, worker_timeout=0.1, node_timeout=2.5) as plane,
        plane.in_process(),
    ):
        plane.atelet.alive = {"worker-1"}
        plane.atelet.always("LookUpWorker", grpc.StatusCode.UNAVAILABLE)
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        await plane.until("a", "SUSPENDED")
        assert plane.atelet.count("LookUpWorker") >= 2
