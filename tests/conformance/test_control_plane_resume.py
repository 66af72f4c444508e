"""C-03: each state of an actor has its one answer to ResumeActor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref, resume, suspend

_AWAY = grpc.StatusCode.UNAVAILABLE


def _delete(control: Any) -> Any:
    return control.DeleteActor(pb.DeleteActorRequest(actor=ref("a"), any_state=True))


# B046: some states answer at once, one waits for the next attempt; none is left out.
@pytest.mark.conformance("C-03")
@pytest.mark.parametrize(
    ("state", "node_call", "begin"),
    [
        ("SUSPENDING", "Checkpoint", lambda control: control.SuspendActor(suspend("a"))),
        (
            "PAUSING",
            "Pause",
            lambda control: control.PauseActor(pb.PauseActorRequest(actor=ref("a"))),
        ),
        (
            "REVERTING",
            "Terminate",
            lambda control: control.RevertActor(pb.RevertActorRequest(actor=ref("a"))),
        ),
        ("DELETING", "Terminate", _delete),
    ],
)
async def test_an_actor_on_its_way_elsewhere_is_not_resumed(
    tmp_path: Path, state: str, node_call: str, begin: Callable[[Any], Any]
) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process():
        await plane.seed("a")
        await plane.register()
        control = plane.control()
        await control.ResumeActor(resume("a"))
        plane.atelet.always(node_call, _AWAY)
        assert (await code_of(begin(control)))[0] == "UNAVAILABLE"
        assert await plane.state("a") == state
        code, message = await _answer(plane)
        assert (code, message) == ("FAILED_PRECONDITION", f"actor team-a/a is {state}")
        assert await plane.state("a") == state


async def _answer(plane: ControlPlane) -> tuple[str, str]:
    """Once the control plane does not just happen to be continuing what was begun."""
    async with asyncio.timeout(10):
        while True:
            code, message = await code_of(plane.control().ResumeActor(resume("a")))
            if code != "ABORTED":
                return code, message
            await asyncio.sleep(0.05)


@pytest.mark.conformance("C-03")
async def test_every_state_at_rest_has_its_answer(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process():
        control = plane.control()
        assert (await code_of(control.ResumeActor(resume("a"))))[0] == "NOT_FOUND"
        await plane.seed("a")
        code, message = await code_of(control.ResumeActor(resume("a")))
        assert (code, message) == ("RESOURCE_EXHAUSTED", "no free workers available")
        await plane.register()
        cold = await control.ResumeActor(resume("a"))
        warm = await control.ResumeActor(resume("a"))
        assert (cold.resumed, warm.resumed) == (True, False)
        assert warm.actor == cold.actor
        await control.PauseActor(pb.PauseActorRequest(actor=ref("a")))
        assert (await control.ResumeActor(resume("a"))).resumed
        await control.SuspendActor(suspend("a"))
        plane.atelet.script("Restore", grpc.StatusCode.INTERNAL)
        assert (await code_of(control.ResumeActor(resume("a"))))[0] == "INTERNAL"
        code, message = await code_of(control.ResumeActor(resume("a")))
        assert code == "FAILED_PRECONDITION"
        assert "CRASHED" in message
