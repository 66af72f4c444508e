"""EgressSupport: what gateways and workers denied, for those whose role lets them look; and the command that asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from atenet.address import Address
from atenet.ateapi.denials import Denials, DenialSources
from atenet.cli.main import ate
from atenet.denials.server import serving_denials
from atenet.denials.settings import DenialsSettings
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import egresssupport_pb2 as egress_pb
from atenet.proto.egresssupport_pb2_grpc import EgressSupportStub
from click.testing import CliRunner, Result

from tests.support.addresses import unused_port
from tests.support.control_plane import ControlPlane, code_of, control_plane, ref
from tests.support.token_issuer import TokenIssuer, token_issuer

GATEWAY, WORKER = "127.0.0.1", "127.1.0.1"
VIEWER = spiffe.pod_id("people", "viewer")


def entry(minute: int, host: str, reason: str = "no-egress-rule") -> dict[str, Any]:
    when = f"2026-01-31T12:{minute:02}:00.000Z"
    what = {"kind": "tls", "host": host, "port": 443, "rule": None}
    return {"first": when, "last": when, "times": 1, **what, "reason": reason, "detail": "no rule"}


@dataclass
class Told:
    """What a process says of `team-a/agent`; who read it."""

    entries: list[dict[str, Any]] = field(default_factory=list)

    def read(self, actor: str) -> str:
        return json.dumps(self.entries if actor == "team-a/agent" else [])


@dataclass
class Stage:
    """A control plane, one gateway and one worker, with denials on one port."""

    plane: ControlPlane
    gateway: Told
    worker: Told
    port: int
    issuer: TokenIssuer

    def stub(self, spiffe_id: str = spiffe.CLI_ID) -> Any:
        component = spiffe_id.rpartition("/")[2]
        return EgressSupportStub(self.plane.channel(component, spiffe_id))

    async def asked(self, name: str = "agent") -> egress_pb.ListActorEgressDenialsResponse:
        request = egress_pb.ListActorEgressDenialsRequest(actor=ref(name))
        answer: egress_pb.ListActorEgressDenialsResponse = await self.stub().ListActorEgressDenials(
            request
        )
        return answer

    @contextlib.contextmanager
    def serving(self, at: str, told: Told, credential: Path) -> Iterator[None]:
        settings = DenialsSettings(
            denials_listen=f"{at}:{self.port}",
            denials_credential=credential,
            denials_trust=self.plane.identity.trust("pod-identity"),
            denials_reader=(spiffe.API_ID,),
        )
        with serving_denials(settings, told.read):
            yield

    def gateway_serves(self) -> contextlib.AbstractContextManager[None]:
        named = [spiffe.EGRESS_SERVER_NAME]
        credential = self.plane.identity.service_credential("egress", named)
        return self.serving(GATEWAY, self.gateway, credential)

    def worker_serves(self, pool: str = "local") -> contextlib.AbstractContextManager[None]:
        worker = spiffe.pod_id("default", pool)
        return self.serving(WORKER, self.worker, self.plane.identity.credential(pool, worker))

    async def ran(self, *words: str) -> Result:
        """`ate policy ...` in a thread: it waits for this loop's control plane."""
        return await asyncio.to_thread(CliRunner().invoke, ate, ["policy", *words])

    @property
    def by_token(self) -> list[str]:
        file = self.plane.root / "token"
        file.write_text(f"{self.issuer.token(roles='guests')}\n")
        roots = str(self.plane.identity.trust("service-dns"))
        return [
            *("--api", self.plane.addresses["tokens"], "--api-roots", roots),
            *("--token-file", str(file)),
        ]


@pytest.fixture(params=["off", "auto"])
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """With and without the engine's front before it."""
    async with control_plane(tmp_path) as plane:
        port = unused_port(GATEWAY)
        served = plane.identity.service_credential("issuer", ["127.0.0.1"])
        with token_issuer(served) as issuer:
            flags: dict[str, Any] = {
                "egress_denials": Address(GATEWAY, port),
                "egress_denials_roots": plane.identity.trust("service-dns"),
                "worker_denials_port": port,
                "role": (f"{VIEWER}=viewer",),
                "token_listen": Address("127.0.0.1", 0),
                "token_issuer": issuer.url,
                "token_audience": ("atenet",),
                "token_roots": plane.identity.trust("service-dns"),
                "token_role": ("guests=viewer",),
                "front": request.param,
            }
            async with plane.in_process(**flags):
                await plane.seed("agent", "other")
                await plane.register("worker-1")
                yield Stage(plane, Told(), Told(), port, issuer)


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


async def test_a_record_that_names_nobody_hides_nothing_of_others(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    trust = stage.plane.identity.trust
    sources = DenialSources(
        gateways=Address(GATEWAY, stage.port),
        roots=trust("service-dns"),
        credential=stage.plane.identity.credential("ate-api-server", spiffe.API_ID),
        worker_port=stage.port,
        worker_roots=trust("pod-identity"),
    )
    odd = pb.Worker(spiffe_id="spiffe://elsewhere/odd", ips=[WORKER])
    odd.metadata.name = "odd"
    with stage.gateway_serves(), contextlib.closing(Denials(sources)) as denials:
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


async def test_the_command_shows_them_to_a_person_with_a_token(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    with stage.gateway_serves():
        done = await stage.ran("denials", "team-a/agent", "-o", "json", *stage.by_token)
        assert done.exit_code == 0, done.output + repr(done.exception)
        (shown,) = json.loads(done.stdout)
        assert (shown["host"], shown["port"], shown["rule"]) == ("a.example", 443, None)
        assert "worker worker-1 is left out" in done.stderr


async def test_the_command_shows_them_to_a_person_with_a_certificate(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    with stage.gateway_serves(), stage.worker_serves():
        credential = stage.plane.identity.credential("viewer", VIEWER)
        roots = stage.plane.identity.trust("service-dns")
        done = await stage.ran(
            *("denials", "team-a/agent", "--api", stage.plane.addresses["grpc"]),
            *("--api-roots", str(roots), "--credential", str(credential)),
        )
        assert done.exit_code == 0, done.output + repr(done.exception)
        assert "a.example" in done.stdout


async def test_a_rule_is_suggested_from_there(stage: Stage) -> None:
    stage.gateway.entries = [entry(2, "a.example")]
    with stage.gateway_serves(), stage.worker_serves():
        done = await stage.ran("suggest", "team-a/agent", *stage.by_token)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert "- a.example" in done.stdout
    assert "https:" in done.stdout


async def test_a_control_plane_that_is_not_there_is_told_with_what_helps(stage: Stage) -> None:
    words = stage.by_token
    words[1] = f"127.0.0.1:{unused_port('127.0.0.1')}"
    done = await stage.ran("denials", "team-a/agent", *words)
    assert isinstance(done.exception, AteError)
    assert "port-forward" in (done.exception.hint or "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--api", "nowhere"], "--api: 'nowhere' is not <host>:<port>"),
        (["--api", "a:1"], "--api needs --api-roots"),
        (["--api", "a:1", "--api-roots", "a"], "one of --token-file and --credential"),
        (
            ["--api", "a:1", "--api-roots", "a", "--token-file", "b", "--credential", "c"],
            "one of --token-file and --credential",
        ),
        (
            ["--api", "a:1", "--api-roots", "/nowhere", "--token-file", "b"],
            "--api-roots: cannot read /nowhere",
        ),
    ],
)
def test_what_is_missing_is_named_before_anybody_is_asked(words: list[str], said: str) -> None:
    done = CliRunner().invoke(ate, ["policy", "denials", "team-a/agent", *words])
    assert isinstance(done.exception, AteError)
    assert said in done.exception.message
