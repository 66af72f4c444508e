"""The `ateapi` process: starts, says so, drains, and refuses what it cannot use."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import grpc
import httpx
import pytest
from atenet.address import Address
from atenet.ateapi.main import main
from atenet.ateapi.process import serving
from atenet.errors import AteError
from atenet.identity import spiffe
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.support.control_plane import ControlPlane, code_of, control_plane, resume
from tests.support.eventually import eventually


async def test_sigterm_lets_a_running_resume_end(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_its_own_process():
        await plane.seed("a")
        await plane.register()
        release = plane.atelet.stall("Run")
        resuming = asyncio.ensure_future(plane.control().ResumeActor(resume("a")))
        await plane.atelet.arrived("Run")
        stopping = asyncio.ensure_future(plane.terminate())
        await eventually(lambda: "draining" in plane.log())
        release()
        assert (await resuming).resumed
        code, printed = await stopping
        assert (code, printed) == (0, b"")


async def test_readiness_ends_with_the_signal_and_liveness_does_not(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_its_own_process():
        await plane.seed("a")
        await plane.register()
        pages = f"http://{plane.addresses['stats']}"
        async with httpx.AsyncClient() as web:
            assert (await web.get(f"{pages}/readyz")).status_code == 200
            release = plane.atelet.stall("Run")
            resuming = asyncio.ensure_future(plane.control().ResumeActor(resume("a")))
            await plane.atelet.arrived("Run")
            stopping = asyncio.ensure_future(plane.terminate())

            async def is_not_ready() -> bool:
                return (await web.get(f"{pages}/readyz")).status_code == 503

            await eventually(is_not_ready)
            assert (await web.get(f"{pages}/healthz")).status_code == 200
        release()
        await resuming
        await stopping


async def test_every_log_line_is_json(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_its_own_process():
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        assert (await plane.terminate())[0] == 0
        lines = [json.loads(line) for line in plane.log().splitlines()]
        assert "actor resumed" in [line["message"] for line in lines]


async def test_calls_are_counted_by_method_and_code(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control(spiffe.ROUTER_ID)
    await control.ResumeActor(resume("a"))
    await control.ResumeActor(resume("a"))
    await code_of(control.ResumeActor(resume("nobody")))
    calls = {"method": "ResumeActor"}
    assert await plane.metric("ateapi_calls_total", code="OK", **calls) == 2
    assert await plane.metric("ateapi_calls_total", code="NOT_FOUND", **calls) == 1
    assert await plane.metric("ateapi_resumes_total") == 1
    assert await plane.metric("ateapi_resume_phase_seconds_count", phase="ready") == 1
    assert await plane.metric("ateapi_call_duration_seconds_count", **calls) == 3
    assert await plane.metric("ateapi_claims_total", outcome="granted") == 1


async def test_capacity_is_shown(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register(slots=4)
    await plane.control().ResumeActor(resume("a"))

    async def shown() -> bool:
        claimed = await plane.metric("ateapi_slots", kind="claimed")
        return claimed == 1 and await plane.metric("ateapi_slots", kind="capacity") == 4

    await eventually(shown)
    assert await plane.metric("ateapi_workers", state="active") == 1


@pytest.mark.parametrize("front", ["off", "auto"])
async def test_health_and_reflection_are_served(tmp_path: Path, front: str) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front=front):
        await _health_and_reflection(plane)


async def _health_and_reflection(plane: ControlPlane) -> None:
    channel = plane.channel("router", spiffe.ROUTER_ID)
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", "ateapi.Control"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    unknown = health.Check(health_pb2.HealthCheckRequest(service="nobody"))
    assert (await code_of(unknown))[0] == "NOT_FOUND"
    listed = await health.List(health_pb2.HealthListRequest())
    services = {"ateapi.Control", "ateapi.WorkerService", "ateapi.EgressSupport"}
    assert {"", *services} == set(listed.statuses)
    person = plane.channel("ate-cli", spiffe.CLI_ID)
    listing = reflection_pb2_grpc.ServerReflectionStub(person).ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    )
    names = [s.name async for r in listing for s in r.list_services_response.service]
    assert services <= set(names)


async def test_a_drain_says_so_first_and_does_not_wait_for_watchers(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_its_own_process():
        health = health_pb2_grpc.HealthStub(plane.channel("router", spiffe.ROUTER_ID))
        watching = health.Watch(health_pb2.HealthCheckRequest(service="ateapi.Control"))
        seen = []
        async for answer in watching:
            if not seen:
                stopping = asyncio.ensure_future(plane.terminate())
            seen.append(answer.status)
        statuses = health_pb2.HealthCheckResponse
        assert seen == [statuses.SERVING, statuses.NOT_SERVING]
        assert (await stopping)[0] == 0


async def test_an_unexpected_error_tells_the_caller_nothing(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret path /var/lib")

    monkeypatch.setattr("atenet.ateapi.store.rows.actors.Actors.get", broken)
    answer = await code_of(plane.control().ResumeActor(resume("a")))
    assert answer == ("INTERNAL", "internal error")


async def test_a_bad_actor_authority_is_refused_at_the_start(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane:
        ca = plane.identity.root / "ca"
        settings = plane.settings(
            actor_ca_cert=ca / "actor-identity.crt", actor_ca_key=ca / "pod-identity.key"
        )
        with pytest.raises(AteError, match="is not the key of"):
            async with serving(settings):
                pass


async def test_a_taken_stats_address_is_named(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process():
        taken = plane.addresses["stats"]
        with pytest.raises(AteError, match="cannot listen"):
            async with serving(plane.settings(stats_listen=Address.parse(taken))):
                pass


def _flags(tmp_path: Path) -> list[str]:
    names = ("server-credential", "client-credential", "client-roots", "node-roots")
    files = [word for name in names for word in (f"--{name}", str(tmp_path / f"{name}.pem"))]
    return ["serve", "--store", str(tmp_path / "s"), "--snapshots", str(tmp_path), *files]


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--worker-timeout", "soon"], "--worker-timeout"),
        (["--role", "x=y"], "no role 'y'"),
        (["--actor-ca-cert", "x"], "--actor-ca-key"),
        (["--node-timeout", "1s"], "--node-timeout"),
        (["--unknown"], "--unknown"),
    ],
)
def test_a_bad_flag_is_named(tmp_path: Path, extra: list[str], named: str) -> None:
    result = CliRunner().invoke(main, [*_flags(tmp_path), *extra])
    assert result.exit_code == 2
    assert named in result.output


async def test_a_missing_file_ends_it_with_two_lines(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane:
        plane.settings()
        plane.identity.trust("pod-identity").unlink()
        command = plane.command(tmp_path / "ready.json")
        process = await asyncio.create_subprocess_exec(
            *command, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        assert (process.returncode, out) == (1, b"")
        assert b"error: cannot read" in err
        assert b"pod-identity.pem" in err
        assert not (tmp_path / "ready.json").exists()


def test_grpc_codes_are_all_known_to_the_tables() -> None:
    assert len(grpc.StatusCode) == 17, "a new code needs a place in workflows/decide.py"
