"""Who may call what, in the table and over the wire."""

from __future__ import annotations

import pytest
from atenet.ateapi.roles import DEFAULT_BINDINGS, Role, Roles, parse_binding
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.rpc import mtls_channel

from tests.support.control_plane import ControlPlane, code_of, ref, resume
from tests.support.issue import odd_credential

_ALL = {
    f"/{s.full_name}/{m.name}" for s in pb.DESCRIPTOR.services_by_name.values() for m in s.methods
}


def _may(role: Role) -> set[str]:
    roles = Roles([("spiffe://x", role)])
    return {m.rpartition("/")[2] for m in _ALL if roles.allows("spiffe://x", m)}


def test_the_router_may_resume_and_nothing_else() -> None:
    assert _may(Role.INGRESS_ROUTER) == {"ResumeActor"}


def test_the_gateway_reads_and_mints() -> None:
    assert _may(Role.EGRESS_GATEWAY) == {
        "GetActor",
        "GetActorEgressPolicy",
        "MintActorCertificate",
        "MintActorJWT",
    }


def test_the_node_agent_speaks_for_its_workers_only() -> None:
    assert _may(Role.ATELET) == {
        "RegisterWorker",
        "MintWorkerActorCertificate",
        "RequestActorSuspend",
    }


def test_nobody_but_the_gateway_mints_for_actors() -> None:
    mint = {"MintActorCertificate", "MintActorJWT"}
    assert {role for role in Role if _may(role) & mint} == {Role.EGRESS_GATEWAY}


def test_a_viewer_only_reads() -> None:
    assert all(m.startswith(("Get", "List")) for m in _may(Role.VIEWER))
    assert _may(Role.VIEWER) < _may(Role.EDITOR) < _may(Role.OWNER)


def test_every_method_is_somebody_s() -> None:
    assert {m.rpartition("/")[2] for m in _ALL} == set().union(*(_may(r) for r in Role))


@pytest.mark.parametrize(
    "odd",
    [spiffe.ROUTER_ID + "/", spiffe.ROUTER_ID.upper(), spiffe.ROUTER_ID + "x", "", "spiffe://"],
)
def test_ids_are_compared_exactly(odd: str) -> None:
    assert not Roles(DEFAULT_BINDINGS).allows(odd, "/ateapi.Control/ResumeActor")


def test_bindings_add_up() -> None:
    roles = Roles([*DEFAULT_BINDINGS, (spiffe.ROUTER_ID, Role.VIEWER)])
    for method in ("ResumeActor", "ListActors"):
        assert roles.allows(spiffe.ROUTER_ID, f"/ateapi.Control/{method}")


def test_a_binding_is_read() -> None:
    assert parse_binding("spiffe://cluster.local/ns/a/sa/b=viewer") == (
        "spiffe://cluster.local/ns/a/sa/b",
        Role.VIEWER,
    )


@pytest.mark.parametrize(
    "bad", ["", "viewer", "spiffe://cluster.local/ns/a/sa/b=king", "https://x=viewer"]
)
def test_a_bad_binding_is_refused(bad: str) -> None:
    with pytest.raises(AteError):
        parse_binding(bad)


async def test_the_table_holds_over_the_wire(plane: ControlPlane) -> None:
    await plane.seed("a")
    for spiffe_id, call, answer in (
        (spiffe.ROUTER_ID, "GetActor", "PERMISSION_DENIED"),
        (spiffe.EGRESS_ID, "GetActor", "OK"),
        (spiffe.ATELET_ID, "GetActor", "PERMISSION_DENIED"),
        (spiffe.pod_id("default", "local"), "GetActor", "PERMISSION_DENIED"),
        (spiffe.CLI_ID, "MintActorJWT", "PERMISSION_DENIED"),
        (spiffe.EGRESS_ID, "MintActorJWT", "UNIMPLEMENTED"),
    ):
        method = getattr(plane.control(spiffe_id), call)
        request = pb.GetActorRequest(actor=ref("a")) if call == "GetActor" else None
        calling = method(request or pb.MintActorJWTRequest())
        if answer == "OK":
            await calling
        else:
            assert (await code_of(calling))[0] == answer, (spiffe_id, call)


async def test_only_node_agents_register_workers(plane: ControlPlane) -> None:
    stub = pb_grpc.WorkerServiceStub(plane.channel("ate-cli", spiffe.CLI_ID))
    code, message = await code_of(stub.RegisterWorker(plane.registration()))
    assert code == "PERMISSION_DENIED"
    assert spiffe.CLI_ID in message


async def test_a_certificate_with_two_ids_is_nobody(plane: ControlPlane) -> None:
    await plane.seed("a")
    path = plane.identity.root / "identity" / "two" / "pod.pem"
    plane.identity.credential("two", spiffe.CLI_ID)
    odd_credential(
        path,
        plane.identity.authority("pod-identity"),
        uris=[spiffe.ROUTER_ID, spiffe.CLI_ID],
        dns=["two"],
    )
    async with mtls_channel(
        plane.addresses["grpc"],
        credential=path,
        roots=plane.identity.trust("service-dns"),
        server_name=spiffe.API_SERVER_NAME,
    ) as channel:
        code, _ = await code_of(pb_grpc.ControlStub(channel).ResumeActor(resume("a")))
    assert code == "UNAUTHENTICATED"
