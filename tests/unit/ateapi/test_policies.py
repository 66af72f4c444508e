"""Egress policies over the wire: one per actor, of an incarnation, changed by who saw it last."""

from __future__ import annotations

from typing import Any

import pytest
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, ref, resume
from tests.support.egress_policies import http, policy


@pytest.fixture
def plane(plane_on_either_store: ControlPlane) -> ControlPlane:
    return plane_on_either_store


def _create(name: str, given: pb.EgressPolicy) -> pb.CreateActorEgressPolicyRequest:
    return pb.CreateActorEgressPolicyRequest(actor=ref(name), egress_policy=given)


def _get(name: str) -> pb.GetActorEgressPolicyRequest:
    return pb.GetActorEgressPolicyRequest(actor=ref(name))


def _update(name: str, given: pb.EgressPolicy) -> pb.UpdateActorEgressPolicyRequest:
    return pb.UpdateActorEgressPolicyRequest(actor=ref(name), egress_policy=given)


async def test_a_policy_lives_from_create_to_delete(plane: ControlPlane) -> None:
    await plane.seed("a")
    control = plane.control()
    made = await control.CreateActorEgressPolicy(_create("a", policy(http("a.example"))))
    assert made.metadata.uid
    assert made.metadata.version == 1
    assert await plane.control(spiffe.EGRESS_ID).GetActorEgressPolicy(_get("a")) == made

    made.rules.append(http("b.example"))
    changed = await control.UpdateActorEgressPolicy(_update("a", made))
    assert changed.metadata.version == 2
    assert [r.http.hostnames[0] for r in changed.rules] == ["a.example", "b.example"]

    gone = await control.DeleteActorEgressPolicy(
        pb.DeleteActorEgressPolicyRequest(actor=ref("a"), options=pb.DeleteOptions(version=2))
    )
    assert gone == changed
    assert (await code_of(control.GetActorEgressPolicy(_get("a"))))[0] == "NOT_FOUND"


async def test_a_policy_is_of_an_actor_and_made_once(plane: ControlPlane) -> None:
    await plane.seed("a")
    control = plane.control()
    for call in (
        control.GetActorEgressPolicy(_get("nobody")),
        control.GetActorEgressPolicy(_get("a")),
        control.CreateActorEgressPolicy(_create("nobody", policy())),
        control.UpdateActorEgressPolicy(_update("a", policy(uid="u", version=1))),
        control.DeleteActorEgressPolicy(pb.DeleteActorEgressPolicyRequest(actor=ref("a"))),
    ):
        assert (await code_of(call))[0] == "NOT_FOUND"
    await control.CreateActorEgressPolicy(_create("a", policy()))
    again = control.CreateActorEgressPolicy(_create("a", policy()))
    assert (await code_of(again))[0] == "ALREADY_EXISTS"


async def test_who_saw_an_older_policy_changes_nothing(plane: ControlPlane) -> None:
    await plane.seed("a")
    control = plane.control()
    made = await control.CreateActorEgressPolicy(_create("a", policy()))
    await control.UpdateActorEgressPolicy(_update("a", made))
    stale: list[Any] = [
        control.UpdateActorEgressPolicy(_update("a", made)),
        control.UpdateActorEgressPolicy(_update("a", policy(uid="other", version=2))),
        *(
            control.DeleteActorEgressPolicy(
                pb.DeleteActorEgressPolicyRequest(actor=ref("a"), options=options)
            )
            for options in (pb.DeleteOptions(version=1), pb.DeleteOptions(uid="other"))
        ),
    ]
    for call in stale:
        assert (await code_of(call))[0] == "ABORTED"
    assert (await control.GetActorEgressPolicy(_get("a"))).metadata.version == 2


# B132
@pytest.mark.conformance("C-07")
async def test_an_actor_made_again_has_no_policy(plane: ControlPlane) -> None:
    await plane.seed("a")
    control = plane.control()
    await control.CreateActorEgressPolicy(_create("a", policy(http("a.example"))))
    await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a")))
    await plane.seed("a")
    assert (await code_of(control.GetActorEgressPolicy(_get("a"))))[0] == "NOT_FOUND"
    made = await control.CreateActorEgressPolicy(_create("a", policy(http("b.example"))))
    assert await control.GetActorEgressPolicy(_get("a")) == made


@pytest.mark.conformance("C-08")
async def test_a_bad_policy_is_named_and_not_stored(plane: ControlPlane) -> None:
    await plane.seed("a")
    control = plane.control()
    bad = policy(http("a.example"), http("https://b.example/"))
    code, message = await code_of(control.CreateActorEgressPolicy(_create("a", bad)))
    assert code == "INVALID_ARGUMENT"
    assert message.startswith("egress_policy.rules[1].http.hostnames[0]:")
    assert (await code_of(control.GetActorEgressPolicy(_get("a"))))[0] == "NOT_FOUND"


async def _for_node(plane: ControlPlane, *known: pb.KnownEgressPolicy, node: str = "node-1") -> Any:
    request = pb.GetWorkerActorEgressPoliciesRequest(known=known)
    answer = await plane.worker_service(node).GetWorkerActorEgressPolicies(request)
    return list(answer.present)


async def test_a_node_learns_what_its_own_actors_may_reach(plane: ControlPlane) -> None:
    await plane.seed("a", "b")
    await plane.register("worker-1", node="node-1")
    uid = (await plane.control().ResumeActor(resume("a"))).actor.metadata.uid
    asleep = (await plane.get("b")).metadata.uid
    known = pb.KnownEgressPolicy(actor=ref("a"), actor_uid=uid)
    assert await _for_node(plane, known) == [pb.PresentEgressPolicy(actor_uid=uid, unchanged=True)]

    made = await plane.control().CreateActorEgressPolicy(_create("a", policy(http("a.example"))))
    assert await _for_node(plane, known) == [pb.PresentEgressPolicy(actor_uid=uid, policy=made)]

    known.policy_uid, known.policy_version = made.metadata.uid, made.metadata.version
    [unchanged] = await _for_node(plane, known)
    assert unchanged.unchanged
    await plane.control().DeleteActorEgressPolicy(pb.DeleteActorEgressPolicyRequest(actor=ref("a")))
    [gone] = await _for_node(plane, known)
    assert (gone.unchanged, gone.HasField("policy")) == (False, False)

    earlier = pb.KnownEgressPolicy(actor=ref("a"), actor_uid="an earlier one")
    elsewhere = pb.KnownEgressPolicy(actor=ref("b"), actor_uid=asleep)
    assert await _for_node(plane, earlier, elsewhere) == []
    assert await _for_node(plane, known, node="node-2") == []


async def test_a_node_asks_within_bounds(plane: ControlPlane) -> None:
    entry = pb.KnownEgressPolicy(actor=ref("a"), actor_uid="u")
    code, message = await code_of(_for_node(plane, *[entry] * 1001))
    assert (code, "known" in message) == ("INVALID_ARGUMENT", True)
    bad = pb.KnownEgressPolicy(actor=pb.ObjectRef(atespace="A", name="b"), actor_uid="u")
    code, message = await code_of(_for_node(plane, bad))
    assert (code, "known[0].actor" in message) == ("INVALID_ARGUMENT", True)
