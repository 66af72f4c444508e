"""Create, get, list, update and delete of every kind of record."""

from __future__ import annotations

import pytest
from atenet.ateapi.service.table import HANDLERS
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, actor, code_of, ref, resume, template


def _atespace(name: str) -> pb.CreateAtespaceRequest:
    return pb.CreateAtespaceRequest(atespace=pb.Atespace(metadata=pb.ResourceMetadata(name=name)))


async def test_an_atespace_lives_and_dies(plane: ControlPlane) -> None:
    control = plane.control()
    made = await control.CreateAtespace(_atespace("team-a"))
    assert made.metadata.version == 1
    assert len(made.metadata.uid) == 36
    assert made.metadata.HasField("create_time")
    assert (await code_of(control.CreateAtespace(_atespace("team-a"))))[0] == "ALREADY_EXISTS"
    assert await control.GetAtespace(pb.GetAtespaceRequest(name="team-a")) == made
    await control.DeleteAtespace(pb.DeleteAtespaceRequest(name="team-a"))
    missing = control.GetAtespace(pb.GetAtespaceRequest(name="team-a"))
    assert (await code_of(missing))[0] == "NOT_FOUND"


async def test_an_atespace_with_something_in_it_stays(plane: ControlPlane) -> None:
    await plane.seed("a")
    control = plane.control()
    delete = pb.DeleteAtespaceRequest(name="team-a")
    code, message = await code_of(control.DeleteAtespace(delete))
    assert (code, "actors" in message) == ("FAILED_PRECONDITION", True)
    await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a")))
    code, message = await code_of(control.DeleteAtespace(delete))
    assert (code, "templates" in message) == ("FAILED_PRECONDITION", True)
    await control.DeleteActorTemplate(pb.DeleteActorTemplateRequest(actor_template=ref("tpl")))
    await control.DeleteAtespace(delete)


async def test_an_actor_needs_its_atespace_and_template(plane: ControlPlane) -> None:
    control = plane.control()
    request = pb.CreateActorRequest(actor=actor("a"))
    assert (await code_of(control.CreateActor(request)))[0] == "FAILED_PRECONDITION"
    await control.CreateAtespace(_atespace("team-a"))
    code, message = await code_of(control.CreateActor(request))
    assert (code, "template team-a/tpl" in message) == ("FAILED_PRECONDITION", True)
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=template()))
    made = await control.CreateActor(request)
    assert made.status.state == pb.ACTOR_STATE_SUSPENDED
    assert (await code_of(control.CreateActor(request)))[0] == "ALREADY_EXISTS"


async def test_the_template_s_atespace_defaults_to_the_actor_s(plane: ControlPlane) -> None:
    await plane.seed()
    short = actor("a")
    short.actor_template.atespace = ""
    made = await plane.control().CreateActor(pb.CreateActorRequest(actor=short))
    assert made.actor_template == ref("tpl")


async def test_a_template_in_use_stays(plane: ControlPlane) -> None:
    await plane.seed("a")
    delete = pb.DeleteActorTemplateRequest(actor_template=ref("tpl"))
    code, _ = await code_of(plane.control().DeleteActorTemplate(delete))
    assert code == "FAILED_PRECONDITION"


async def test_a_template_gets_its_defaults(plane: ControlPlane) -> None:
    await plane.seed()
    found = await plane.control().GetActorTemplate(
        pb.GetActorTemplateRequest(actor_template=ref("tpl"))
    )
    assert found.sandbox_config.sandbox_class == "process"
    assert found.snapshot_config.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_DATA
    assert found.status.ready


async def test_an_update_needs_the_version_it_saw(plane: ControlPlane) -> None:
    (made,) = await plane.seed("a")
    control = plane.control()
    made.worker_selector.match_labels["disk"] = "fast"
    updated = await control.UpdateActor(pb.UpdateActorRequest(actor=made))
    assert updated.metadata.version == made.metadata.version + 1
    assert updated.worker_selector.match_labels["disk"] == "fast"
    code, _ = await code_of(control.UpdateActor(pb.UpdateActorRequest(actor=made)))
    assert code == "ABORTED"
    updated.actor_template.name = "other"
    code, message = await code_of(control.UpdateActor(pb.UpdateActorRequest(actor=updated)))
    assert (code, message.split(":")[0]) == ("INVALID_ARGUMENT", "actor.actor_template")


async def test_an_update_cannot_write_the_status(plane: ControlPlane) -> None:
    (made,) = await plane.seed("a")
    made.status.state = pb.ACTOR_STATE_RUNNING
    updated = await plane.control().UpdateActor(pb.UpdateActorRequest(actor=made))
    assert updated.status.state == pb.ACTOR_STATE_SUSPENDED


async def test_actors_are_listed_page_by_page(plane: ControlPlane) -> None:
    await plane.seed(*(f"a{i}" for i in range(5)))
    await plane.seed("b0", atespace="team-b")
    control = plane.control()
    seen, token = [], ""
    while True:
        page = await control.ListActors(pb.ListActorsRequest(page_size=2, page_token=token))
        assert len(page.actors) <= 2
        seen += [f"{a.metadata.atespace}/{a.metadata.name}" for a in page.actors]
        token = page.next_page_token
        if not token:
            break
    assert seen == [*(f"team-a/a{i}" for i in range(5)), "team-b/b0"]
    only = await control.ListActors(pb.ListActorsRequest(atespace="team-b", page_size=5000))
    assert [a.metadata.name for a in only.actors] == ["b0"]


async def test_the_last_page_of_exactly_full_size_has_no_token(plane: ControlPlane) -> None:
    await plane.seed("a0", "a1")
    page = await plane.control().ListActors(pb.ListActorsRequest(page_size=2))
    assert not page.next_page_token


@pytest.mark.parametrize("token", ["x", "####", "W10=", "WyJhdGVzcGFjZXMiLCJhIl0="])
async def test_a_bad_page_token_is_refused(plane: ControlPlane, token: str) -> None:
    listing = plane.control().ListActors(pb.ListActorsRequest(page_token=token))
    code, message = await code_of(listing)
    assert (code, message.split(":")[0]) == ("INVALID_ARGUMENT", "page_token")


async def test_a_negative_page_size_is_refused(plane: ControlPlane) -> None:
    listing = plane.control().ListAtespaces(pb.ListAtespacesRequest(page_size=-1))
    assert (await code_of(listing))[0] == "INVALID_ARGUMENT"


async def test_a_name_made_again_is_another_actor(plane: ControlPlane) -> None:
    (first,) = await plane.seed("a")
    await plane.control().DeleteActor(pb.DeleteActorRequest(actor=ref("a")))
    (second,) = await plane.seed("a")
    assert first.metadata.uid != second.metadata.uid


async def test_workers_are_listed_with_their_slots(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register("worker-1", slots=2)
    await plane.register("worker-2", slots=3)
    await plane.control().ResumeActor(resume("a"))
    listed = (await plane.control().ListWorkers(pb.ListWorkersRequest())).workers
    counts = [(w.status.allocated.actors, w.status.capacity.actors) for w in listed]
    assert counts == [(1, 2), (0, 3)]
    on = await plane.control().ListWorkerActorAssignments(
        pb.ListWorkerActorAssignmentsRequest(worker=pb.ObjectRef(name="worker-1"))
    )
    assert [a.metadata.name for a in on.actors] == ["a"]
    delete = pb.DeleteWorkerRequest(worker=pb.ObjectRef(name="worker-1"))
    assert (await code_of(plane.control().DeleteWorker(delete)))[0] == "FAILED_PRECONDITION"
    delete.worker.name = "worker-2"
    await plane.control().DeleteWorker(delete)


def test_every_method_of_the_contract_is_built() -> None:
    for service in pb.DESCRIPTOR.services_by_name.values():
        assert {method.name for method in service.methods} == set(HANDLERS[service.name])
