"""EgressSupport: what gateways and workers denied, for those whose role lets them look."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from atenet.address import Address
from atenet.ateapi.denials import Denials, DenialSources
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import egresssupport_pb2 as egress_pb
from atenet.proto.egresssupport_pb2_grpc import EgressSupportStub

from tests.support.control_plane import code_of, control_plane, ref
from tests.support.denials_stage import GATEWAY, VIEWER, WORKER, Stage, denials_stage, entry


@pytest.fixture(params=["off", "auto"])
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """With and without the engine's front before it."""
    async with denials_stage(tmp_path, request.param) as made:
        yield made


async def test_gateways_and_workers_are_asked_and_told_as_one(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example"), entry(1, "b.example")]
    stage.worker.entries = [entry(3, "a.example"), entry(4, "c.example", "name-denied")]
    with stage.gateway_serves(), stage.worker_serves():
        found = await stage.asked()
        assert [(each.host, each.times) for each in found.denials] == [
            ("c.example", 1),
            ("a.example", 2),
            ("b.example", 1),
        ]
        assert not found.denials[0].HasField("rule")
        assert list(found.unanswered) == []
        assert not (await stage.asked("other")).denials


async def test_who_does_not_answer_or_is_somebody_else_is_named(stage: Stage) -> None:
    stage.gateway.entries = stage.worker.entries = [entry(2, "a.example")]
    with stage.gateway_serves():
        found = await stage.asked()
        assert list(found.unanswered) == ["worker worker-1"]
        assert [each.times for each in found.denials] == [1]
        with stage.worker_serves("impostor"):
            assert list((await stage.asked()).unanswered) == ["worker worker-1"]
    assert list((await stage.asked()).unanswered) == ["egress gateway 127.0.0.1", "worker worker-1"]


@pytest.mark.parametrize(
    "odd", [{"times": "2"}, {"last": "2026-01-31"}, {"host": []}, {"port": {}}]
)
async def test_who_answers_nonsense_is_named_and_hides_nothing_of_others(
    stage: Stage, odd: dict[str, Any]
) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    stage.worker.entries = [entry(2, "a.example"), {**entry(2, "a.example"), **odd}]
    with stage.gateway_serves(), stage.worker_serves():
        found = await stage.asked()
    assert list(found.unanswered) == ["worker worker-1"]
    assert [(each.host, each.times) for each in found.denials] == [("a.example", 1)]


def sources(stage: Stage, gateways: str = GATEWAY) -> DenialSources:
    trust = stage.plane.identity.trust
    return DenialSources(
        gateways=Address(gateways, stage.port),
        roots=trust("service-dns"),
        credential=stage.plane.identity.credential("ate-api-server", spiffe.API_ID),
        worker_port=stage.port,
        worker_roots=trust("pod-identity"),
    )


def worker(spiffe_id: str) -> pb.Worker:
    made = pb.Worker(spiffe_id=spiffe_id, ips=[WORKER])
    made.metadata.name = "odd" if "odd" in spiffe_id else "worker-1"
    return made


async def test_gateways_whose_name_is_not_known_are_said_to_be_missing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.worker.entries = [entry(2, "a.example", "name-denied")]
    nowhere = "nowhere.invalid"
    known = worker(spiffe.pod_id("default", "local"))
    with stage.worker_serves(), contextlib.closing(Denials(sources(stage, nowhere))) as denials:
        found = await denials.of("team-a/agent", [known])
    assert found.unanswered == ["egress gateways (nowhere.invalid)"]
    assert [each.host for each in found.denials] == ["a.example"]
    assert "no egress gateway found" in caplog.text


async def test_a_name_server_that_says_nothing_holds_nobody_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = threading.Event()

    def silent(*_: Any, **__: Any) -> Any:
        left.wait(60)
        raise OSError("given up")

    monkeypatch.setattr("atenet.ateapi.denials._NAME_SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", silent)
    try:
        with contextlib.closing(Denials(sources(stage, "slow.example"))) as denials:
            found = await denials.of("team-a/agent", [])
    finally:
        left.set()
    assert found.unanswered == ["egress gateways (slow.example)"]


async def test_a_record_that_names_nobody_hides_nothing_of_others(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    odd = worker("spiffe://elsewhere/odd")
    with stage.gateway_serves(), contextlib.closing(Denials(sources(stage))) as denials:
        found = await denials.of("team-a/agent", [odd])
    assert found.unanswered == ["worker odd"]
    assert [each.host for each in found.denials] == ["a.example"]


async def test_people_who_may_look_are_told_and_nobody_else(stage: Stage) -> None:
    request = egress_pb.ListActorEgressDenialsRequest(actor=ref("agent"))
    with stage.gateway_serves(), stage.worker_serves():
        for who in (spiffe.CLI_ID, VIEWER):
            await stage.stub(who).ListActorEgressDenials(request)
        for who in (spiffe.EGRESS_ID, spiffe.ROUTER_ID, spiffe.pod_id("team", "stranger")):
            code, _ = await code_of(stage.stub(who).ListActorEgressDenials(request))
            assert code == "PERMISSION_DENIED", who


async def test_an_actor_that_is_not_there_is_said_to_be_missing(stage: Stage) -> None:
    request = egress_pb.ListActorEgressDenialsRequest(actor=ref("nobody"))
    code, message = await code_of(stage.stub().ListActorEgressDenials(request))
    assert (code, message) == ("NOT_FOUND", "actor team-a/nobody does not exist")


async def test_a_control_plane_that_was_told_of_nobody_says_so(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process():
        await plane.seed("agent")
        stub = EgressSupportStub(plane.channel("ate-cli", spiffe.CLI_ID))
        request = egress_pb.ListActorEgressDenialsRequest(actor=ref("agent"))
        code, message = await code_of(stub.ListActorEgressDenials(request))
        assert code == "FAILED_PRECONDITION"
        assert "--egress-denials" in message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"egress_denials": Address("a", 1)}, "--egress-denials and --egress-denials-roots"),
        ({"worker_denials_port": 7448}, "--worker-denials-port needs --egress-denials"),
        (
            {
                "egress_denials": Address("a", 1),
                "egress_denials_roots": Path("a"),
                "worker_denials_port": 0,
            },
            "--worker-denials-port 0 is no port",
        ),
    ],
)
async def test_flags_that_do_not_fit_are_named(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    async with control_plane(tmp_path) as plane:
        with pytest.raises(AteError, match=said):
            plane.settings(**given)
