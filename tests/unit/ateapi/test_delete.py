"""DeleteActor: in which states, under which conditions, and what is left: nothing."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, pause, ref, resume, revert, suspend
from tests.support.eventually import eventually
from tests.support.fake_atelet import snapshot_directory

Codes = grpc.StatusCode


def _delete(name: str, **given: object) -> pb.DeleteActorRequest:
    options = pb.DeleteOptions(
        **{k: v for k, v in given.items() if k in ("uid", "version")}  # type: ignore[arg-type]
    )
    return pb.DeleteActorRequest(
        actor=ref(name), any_state=bool(given.get("any_state")), options=options
    )


async def test_a_suspended_actor_and_its_snapshots_are_gone(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    suspended = (await control.SuspendActor(suspend("a"))).actor
    directory = snapshot_directory(suspended.status.external_snapshot.snapshot_uri)
    assert directory.exists()
    gone = await control.DeleteActor(_delete("a"))
    assert gone.metadata.uid == suspended.metadata.uid
    assert (await code_of(control.GetActor(pb.GetActorRequest(actor=ref("a")))))[0] == "NOT_FOUND"
    await eventually(lambda: not directory.parent.exists())


async def test_a_running_one_needs_any_state(plane: ControlPlane) -> None:
    await plane.seed("a", "b")
    await plane.register(slots=1)
    control = plane.control()
    await control.ResumeActor(resume("a"))
    assert (await code_of(control.DeleteActor(_delete("a"))))[0] == "FAILED_PRECONDITION"
    assert await plane.state("a") == "RUNNING"
    await control.DeleteActor(_delete("a", any_state=True))
    assert plane.atelet.count("Terminate") == 1
    assert (await control.ResumeActor(resume("b"))).resumed, "its slot is free"


async def test_a_crashed_one_goes_without_any_state(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    plane.atelet.script("Run", Codes.INTERNAL)
    await code_of(plane.control().ResumeActor(resume("a")))
    await plane.control().DeleteActor(_delete("a"))


async def test_uid_and_version_guard_it(plane: ControlPlane) -> None:
    (made,) = await plane.seed("a")
    control = plane.control()
    for wrong in ({"uid": "other"}, {"version": made.metadata.version + 1}):
        assert (await code_of(control.DeleteActor(_delete("a", **wrong))))[0] == "ABORTED"
    assert await plane.get("a") == made
    right = {"uid": made.metadata.uid, "version": made.metadata.version}
    await control.DeleteActor(_delete("a", **right))


async def test_an_unavailable_node_leaves_it_deleting_and_a_retry_ends_it(
    plane: ControlPlane,
) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    plane.atelet.script("Terminate", Codes.UNAVAILABLE)
    request = _delete("a", any_state=True)
    assert (await code_of(control.DeleteActor(request)))[0] == "UNAVAILABLE"
    assert await plane.state("a") == "DELETING"
    assert (await code_of(control.ResumeActor(resume("a"))))[0] == "FAILED_PRECONDITION"
    await control.DeleteActor(_delete("a"))
    assert (await code_of(control.GetActor(pb.GetActorRequest(actor=ref("a")))))[0] == "NOT_FOUND"


async def test_a_running_operation_is_not_cut(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    release = plane.atelet.stall("Run")
    resuming = asyncio.ensure_future(plane.control().ResumeActor(resume("a")))
    await plane.atelet.arrived("Run")
    code, _ = await code_of(plane.control().DeleteActor(_delete("a", any_state=True)))
    assert code == "ABORTED"
    release()
    assert (await resuming).resumed


async def _into(plane: ControlPlane, word: str) -> None:
    """Brings actor `a` to that state; intermediate ones by a node that is unavailable."""
    control = plane.control()
    if word == "SUSPENDED":
        return
    if word in ("RESUMING", "CRASHED"):
        plane.atelet.script("Run", Codes.UNAVAILABLE if word == "RESUMING" else Codes.INTERNAL)
        await code_of(control.ResumeActor(resume("a")))
        return
    await control.ResumeActor(resume("a"))
    if word == "PAUSED":
        await control.PauseActor(pause("a"))
    elif word != "RUNNING":
        method, call = {
            "SUSPENDING": ("Checkpoint", lambda: control.SuspendActor(suspend("a"))),
            "PAUSING": ("Pause", lambda: control.PauseActor(pause("a"))),
            "REVERTING": ("Terminate", lambda: control.RevertActor(revert("a"))),
            "DELETING": ("Terminate", lambda: control.DeleteActor(_delete("a", any_state=True))),
        }[word]
        plane.atelet.script(method, Codes.UNAVAILABLE)
        await code_of(call())


@pytest.mark.parametrize(
    "word",
    [
        *("SUSPENDED", "RESUMING", "RUNNING", "SUSPENDING", "PAUSING"),
        *("PAUSED", "CRASHED", "REVERTING", "DELETING"),
    ],
)
async def test_from_every_state_nothing_is_left(plane: ControlPlane, word: str) -> None:
    await plane.seed("a", "b")
    await plane.register(slots=1)
    await _into(plane, word)
    assert await plane.state("a") == word
    assert (await plane.control().DeleteActor(_delete("a", any_state=True))).metadata.name == "a"
    gone = plane.control().GetActor(pb.GetActorRequest(actor=ref("a")))
    assert (await code_of(gone))[0] == "NOT_FOUND"
    assert not plane.atelet.hosted["worker-1"]
    assert plane.atelet.frozen == set()
    assert (await plane.control().ResumeActor(resume("b"))).resumed, "the one slot is free"


async def test_nodes_are_told_of_a_deleted_template(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    await plane.register("worker-2")
    control, tpl = plane.control(), pb.ObjectRef(atespace="team-a", name="tpl")
    found = await control.GetActorTemplate(pb.GetActorTemplateRequest(actor_template=tpl))
    request = pb.DeleteActorTemplateRequest(actor_template=tpl)
    assert (await code_of(control.DeleteActorTemplate(request)))[0] == "FAILED_PRECONDITION"
    await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a")))
    assert plane.atelet.count("ForgetTemplate") == 0
    await control.DeleteActorTemplate(request)
    await eventually(lambda: plane.atelet.count("ForgetTemplate") == 1)  # once a node
    assert plane.atelet.last("ForgetTemplate").template_uid == found.metadata.uid
