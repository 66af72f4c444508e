"""C-02 and C-04 with several control planes on one PostgreSQL database, of which some die."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.postgres.schema import migrate
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import (
    code_of,
    control_plane,
    pause,
    ref,
    resume,
    revert,
    suspend,
)
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer
from tests.support.replica_storm import storm

CALLS: dict[str, Any] = {
    "resume": lambda control: control.ResumeActor(resume("a")),
    "suspend": lambda control: control.SuspendActor(suspend("a")),
    "pause": lambda control: control.PauseActor(pause("a")),
    "revert": lambda control: control.RevertActor(revert("a")),
    "delete": lambda control: control.DeleteActor(
        pb.DeleteActorRequest(actor=ref("a"), any_state=True)
    ),
}
ENDS = {"resume": "RUNNING", "suspend": "SUSPENDED", "pause": "PAUSED", "revert": "SUSPENDED"}


@pytest.mark.conformance("C-02")
@pytest.mark.parametrize(
    "point",
    [
        "resume.claimed",
        "resume.started",
        "suspend.begun",
        "suspend.stored",
        "pause.frozen",
        "revert.begun",
        "delete.begun",
    ],
)
async def test_what_a_killed_replica_began_another_ends(
    tmp_path: Path, postgres: PostgresServer, point: str
) -> None:
    """The other one has been there all the time; nobody restarts anything or calls again."""
    url = postgres.database()
    migrate(PostgresUrl(url))
    workflow = point.partition(".")[0]
    async with control_plane(tmp_path, store=url) as plane:
        lasting, dying = plane.replica("lasting"), plane.replica("dying")
        async with (
            lasting.in_its_own_process(),
            dying.in_its_own_process(stop_at=point),
        ):
            await lasting.seed("a", "b")
            await lasting.register(slots=1)
            async with lasting.heartbeats("worker-1", slots=1):
                if workflow != "resume":
                    await lasting.control().ResumeActor(resume("a"))
                control = dying.control()
                # The other one may be looking at what its heartbeats said.
                while (await code_of(CALLS[workflow](control)))[0] == "ABORTED":
                    continue
                assert await dying.killed() == -9
                if workflow == "delete":
                    listed = pb.ListActorsRequest()
                    control = lasting.control()

                    async def gone() -> bool:
                        return len((await control.ListActors(listed)).actors) == 1

                    await eventually(gone)
                else:
                    await lasting.until("a", ENDS[workflow], seconds=30)
                held = workflow in ("resume", "pause")
                assert len(plane.atelet.hosted["worker-1"]) == held
                # The one slot is a's or free: neither lost nor doubled.
                if held:
                    code, _ = await code_of(lasting.control().ResumeActor(resume("b")))
                    assert code == "RESOURCE_EXHAUSTED"
                else:
                    assert (await lasting.control().ResumeActor(resume("b"))).resumed


@pytest.mark.conformance("C-05")
async def test_a_replica_that_restarts_keeps_no_lost_worker_alive(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Somebody listened all the time: a worker's silence is not the control plane's absence."""
    url = postgres.database()
    migrate(PostgresUrl(url))
    async with control_plane(tmp_path, store=url, worker_timeout=1.5) as plane:
        other = plane.replica("other")
        async with plane.in_process():
            await plane.seed("a")
            await plane.register(slots=1)
            await plane.control().ResumeActor(resume("a"))
            control = plane.control()

            async def taken_off() -> bool:
                async with other.in_process():  # starts, and ends
                    pass
                found = await control.GetActor(pb.GetActorRequest(actor=ref("a")))
                return found.status.state == pb.ACTOR_STATE_SUSPENDED

            await eventually(taken_off)


@pytest.mark.conformance("C-02", "C-04")
async def test_resumes_survive_replicas_that_are_killed_all_the_time(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    # A busy machine may take longer than a router waits: that is the benchmark's to say.
    report = await storm(tmp_path, postgres, seconds=15, kill_every=3, budget=30)
    assert report.kills >= 2
    assert report.resumes > 100
    assert report.lost == []
