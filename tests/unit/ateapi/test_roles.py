"""Who may call what: every method for every role, over the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from atenet.ateapi.roles import DEFAULT_BINDINGS, PEOPLE, TABLE, Role, Roles, allowed, parse_binding
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.proto import egresssupport_pb2 as egress_pb
from atenet.proto import routersupport_pb2 as support_pb
from atenet.rpc import mtls_channel
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref, resume
from tests.support.issue import odd_credential

_IDS = {
    Role.OWNER: spiffe.CLI_ID,
    Role.EDITOR: spiffe.pod_id("people", "editor"),
    Role.VIEWER: spiffe.pod_id("people", "viewer"),
    Role.INGRESS_ROUTER: spiffe.ROUTER_ID,
    Role.EGRESS_GATEWAY: spiffe.EGRESS_ID,
    Role.ATELET: spiffe.ATELET_ID,
    Role.CONTROLLER: spiffe.CONTROLLER_ID,
}
_HEALTH = {"Check", "List", "Watch"}
_READS = {
    *("GetAtespace", "ListAtespaces", "GetActorTemplate", "ListActorTemplates", "GetActor"),
    *("ListActors", "GetActorEgressPolicy", "GetWorker", "ListWorkers"),
    *("ListWorkerActorAssignments", "ServerReflectionInfo"),
}
_LOOKS = {"ListActorEgressDenials"}
_EDITS = {
    *("CreateActorTemplate", "DeleteActorTemplate", "CreateActor", "UpdateActor", "DeleteActor"),
    *("ResumeActor", "SuspendActor", "PauseActor", "RevertActor", "CreateActorEgressPolicy"),
    *("UpdateActorEgressPolicy", "DeleteActorEgressPolicy"),
}
_WORKERS = {"CreateWorker", "UpdateWorker", "DeleteWorker", "DrainWorker"}
_MINT = {"MintActorJWT", "MintActorCertificate"}
# Said a second time, so that a slip in the product's table does not prove itself.
_MAY: dict[Role, set[str]] = {
    Role.OWNER: _READS | _EDITS | _WORKERS | _LOOKS | {"CreateAtespace", "DeleteAtespace"},
    Role.EDITOR: _READS | _EDITS | _LOOKS,
    Role.VIEWER: _READS | _LOOKS,
    Role.INGRESS_ROUTER: {"ResumeActor", "ListActors", "Locate"},
    Role.EGRESS_GATEWAY: {"GetActor", "GetActorEgressPolicy"} | _MINT,
    Role.ATELET: {
        *("RegisterWorker", "MintWorkerActorCertificate", "RequestActorSuspend"),
        "GetWorkerActorEgressPolicies",
    },
    Role.CONTROLLER: _READS | _WORKERS,
}

_ASKED_AGAIN = 50


def _methods() -> Iterator[tuple[str, Any]]:
    """Every method that the server serves: its path and its descriptor."""
    for file in (pb, support_pb, egress_pb, health_pb2, reflection_pb2):
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield f"/{service.full_name}/{method.name}", method


def test_every_method_has_a_row_and_every_row_a_method() -> None:
    assert {path for path, _ in _methods()} == set(TABLE)


def test_a_method_without_a_row_is_nobody_s() -> None:
    assert not allowed(Role, "/ateapi.Control/MakeCoffee")


@pytest.mark.conformance("C-01", "E-25")
@pytest.mark.parametrize("role", Role)
async def test_a_role_may_call_its_methods_and_no_others(plane: ControlPlane, role: Role) -> None:
    node = "node-1" if role is Role.ATELET else None
    channel = plane.channel(f"as-{role.value}", _IDS[role], node=node)
    found = {path for path, method in _methods() if await _lets_in(channel, path, method)}
    assert {path.rpartition("/")[2] for path in found} == _MAY[role] | _HEALTH


async def _lets_in(channel: Any, path: str, method: Any) -> bool:
    """Whether the call gets further than the table; what it is refused for then is its own affair."""
    body = b""
    if path.endswith("/ListActors"):
        body = pb.ListActorsRequest(page_size=1).SerializeToString()
    code = await _code(channel, path, method, body)
    assert code is not grpc.StatusCode.UNAUTHENTICATED
    return code is not grpc.StatusCode.PERMISSION_DENIED


async def _code(channel: Any, path: str, method: Any, body: bytes) -> grpc.StatusCode:
    """OK as soon as a stream says anything: it may go on for ever."""
    if not method.client_streaming and not method.server_streaming:
        return cast("grpc.StatusCode", await channel.unary_unary(path)(body).code())
    if method.client_streaming:
        call = await _stream(channel, path, body)
    else:
        call = channel.unary_stream(path)(body)
    with contextlib.suppress(grpc.aio.AioRpcError):
        if await call.read() is not grpc.aio.EOF:
            call.cancel()
            return grpc.StatusCode.OK
    return cast("grpc.StatusCode", await call.code())


async def _stream(channel: Any, path: str, body: bytes) -> Any:
    """A call whose end is the server's word. Where a write meets the refusal on its way, grpc says INTERNAL by
    itself and forgets what the server said: then it is asked again."""
    for _ in range(_ASKED_AGAIN):
        call = channel.stream_stream(path)()
        try:
            await call.write(body)
        except asyncio.InvalidStateError:
            return call  # it had ended before
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.INTERNAL:
                continue
        return call
    raise AssertionError(f"{path}: no answer of the server's own")


@pytest.fixture(params=["off", "auto"])
async def plane(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """With and without the engine's front: it must let nobody in whom the table keeps out."""
    people = tuple(f"{_IDS[role]}={role.value}" for role in (Role.EDITOR, Role.VIEWER))
    async with (
        control_plane(tmp_path) as made,
        made.in_process(role=people, front=request.param),
    ):
        yield made


async def test_an_id_without_a_role_may_call_nothing(plane: ControlPlane) -> None:
    channel = plane.channel("stranger", spiffe.pod_id("default", "local"))
    assert not [path for path, method in _methods() if await _lets_in(channel, path, method)]


async def test_a_router_lists_to_see_that_somebody_answers_and_no_more(
    plane: ControlPlane,
) -> None:
    await plane.seed("a", "b")
    router = plane.control(spiffe.ROUTER_ID)
    first = await router.ListActors(pb.ListActorsRequest(page_size=1))
    assert len(first.actors) == 1
    for more in (
        pb.ListActorsRequest(),
        pb.ListActorsRequest(page_size=2),
        pb.ListActorsRequest(page_size=1, page_token=first.next_page_token),
    ):
        assert (await code_of(router.ListActors(more)))[0] == "PERMISSION_DENIED"


def test_only_people_s_roles_can_come_with_a_token() -> None:
    assert {Role.OWNER, Role.EDITOR, Role.VIEWER} == PEOPLE


@pytest.mark.parametrize(
    "odd",
    [spiffe.ROUTER_ID + "/", spiffe.ROUTER_ID.upper(), spiffe.ROUTER_ID + "x", "", "spiffe://"],
)
def test_ids_are_compared_exactly(odd: str) -> None:
    assert not Roles(DEFAULT_BINDINGS).of(odd)


def test_bindings_add_up() -> None:
    roles = Roles([*DEFAULT_BINDINGS, (spiffe.ROUTER_ID, Role.VIEWER)])
    assert roles.of(spiffe.ROUTER_ID) == {Role.INGRESS_ROUTER, Role.VIEWER}


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


# B128: two SPIFFE URIs; one SPIFFE and one https URI; none; a common name only.
@pytest.mark.conformance("C-01")
@pytest.mark.parametrize(
    "uris",
    [
        [spiffe.ROUTER_ID, spiffe.CLI_ID],
        [spiffe.CLI_ID, spiffe.ROUTER_ID],
        [spiffe.CLI_ID, "https://cluster.local/ns/ate-system/sa/ate-cli"],
        [],
    ],
)
async def test_a_certificate_that_does_not_have_exactly_one_id_is_nobody(
    plane: ControlPlane, uris: list[str]
) -> None:
    await plane.seed("a")
    path = plane.identity.root / "identity" / "odd" / "pod.pem"
    plane.identity.credential("odd", spiffe.CLI_ID)
    authority = plane.identity.authority("pod-identity")
    odd_credential(path, authority, uris=uris, dns=["ate-cli.ate-system.pod.cluster.local"])
    async with mtls_channel(
        plane.addresses["grpc"],
        credential=path,
        roots=plane.identity.trust("service-dns"),
        server_name=spiffe.API_SERVER_NAME,
    ) as channel:
        code, _ = await code_of(pb_grpc.ControlStub(channel).ResumeActor(resume("a")))
    assert code == "UNAUTHENTICATED"


async def test_the_refusal_names_who_and_what_and_is_in_the_log(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    call = plane.control(spiffe.ROUTER_ID).GetActor(pb.GetActorRequest(actor=ref("a")))
    reason = f"{spiffe.ROUTER_ID} may not call GetActor"
    assert await code_of(call) == ("PERMISSION_DENIED", reason)
    (line,) = [record for record in caplog.records if record.getMessage() == "call refused"]
    assert (line.__dict__["method"], line.__dict__["reason"]) == ("Control/GetActor", reason)
