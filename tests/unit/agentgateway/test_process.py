"""`atenet agentgateway` as an operator runs it."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from atenet.identity import spiffe
from atenet.identity.local import LocalIdentity

from tests.support.eventually import eventually, within
from tests.support.router_process import program
from tests.unit.agentgateway.files import TLS, config, ingress, text

EXAMPLE = Path(__file__).parents[3] / "examples" / "agentgateway-ingress.yaml"


class Run:
    """One process with its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ready_file = directory / "ready.json"
        self.process: asyncio.subprocess.Process

    async def start(self, *arguments: str) -> None:
        self.process = await asyncio.create_subprocess_exec(
            program("atenet"),
            "agentgateway",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def ready(self) -> dict[str, Any]:
        await eventually(lambda: self.ready_file.exists() or self.process.returncode is not None)
        assert self.process.returncode is None, await self.process.communicate()
        addresses: dict[str, Any] = json.loads(self.ready_file.read_text())
        return addresses

    async def ended(self) -> tuple[int, str, str]:
        out, err = await within(self.process.communicate(), 30)
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    run = Run(tmp_path)
    yield run
    if hasattr(run, "process") and run.process.returncode is None:
        run.process.kill()
        await run.process.communicate()


def identity(directory: Path) -> dict[str, str]:
    local = LocalIdentity(directory / "state")
    local.ensure()
    pod = str(local.credential("router", spiffe.ROUTER_ID))
    return {**TLS, "cert": pod, "key": pod, "root": str(local.trust("service-dns"))}


def file(directory: Path, *, delay: str = "0s", **parts: Any) -> str:
    """A file with real credentials, for ports that the system chooses."""
    tls = identity(directory)
    data = config(
        gateways={"default": {"port": 0}},
        routes=[ingress(host="127.0.0.1:1", policies={"backendTLS": tls})],
        config={
            "statsAddr": "127.0.0.1:0",
            "readinessAddr": "127.0.0.1:0",
            "connectionMinTerminationDeadline": delay,
        },
    )
    data["backends"][0]["policies"]["backendTunnel"]["policies"]["backendTLS"] = tls
    path = directory / "agentgateway.yaml"
    path.write_text(text({**data, **parts}))
    return str(path)


async def get(address: str, path: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"http://{address}{path}")


async def serve(run: Run, **settings: Any) -> dict[str, Any]:
    arguments = ("--bind-address", "127.0.0.1", "--ready-file", str(run.ready_file))
    await run.start("-f", file(run.directory, **settings), *arguments)
    return await run.ready()


async def test_it_serves_says_where_and_stops_on_sigterm(run: Run) -> None:
    ready = await serve(run)
    assert (await get(ready["readiness"], "/readyz")).status_code == 200
    assert (await get(ready["readiness"], "/healthz")).status_code == 200
    assert "atenet_router_parking_active" in (await get(ready["stats"], "/metrics")).text
    run.process.send_signal(signal.SIGTERM)
    code, out, err = await run.ended()
    assert (code, out) == (0, "")
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["process"] for line in lines if "process" in line} == {"agentgateway"}


@pytest.mark.conformance("I-36")
async def test_sigterm_turns_readyz_at_once_and_a_second_one_ends_the_wait(run: Run) -> None:
    ready = await serve(run, delay="20s")
    run.process.send_signal(signal.SIGTERM)

    async def not_ready() -> bool:
        return (await get(ready["readiness"], "/readyz")).status_code == 503

    await eventually(not_ready)
    assert (await get(ready["readiness"], "/healthz")).status_code == 200
    assert run.process.returncode is None
    run.process.send_signal(signal.SIGTERM)
    assert (await run.ended())[0] == 0


async def test_validate_says_so_and_does_not_serve(run: Run) -> None:
    await run.start("--validate", "-f", str(EXAMPLE))
    assert await run.ended() == (0, f"{EXAMPLE}: valid\n", "")


async def test_an_unknown_key_ends_it_with_the_line(run: Run) -> None:
    path = file(run.directory, gatways={})
    await run.start("-f", path)
    code, out, err = await run.ended()
    assert (code, out) == (1, "")
    assert "gatways: unknown key; did you mean `gateways`?" in err
    assert "hint: " in err
    assert f"{path}:" in err


async def test_parts_that_do_not_fit_end_it_with_the_line(run: Run) -> None:
    path = file(run.directory, routes=[])
    await run.start("-f", path)
    code, _, err = await run.ended()
    assert code == 1
    assert f"{path}:2: gateways.default: no route names this gateway" in err


async def test_a_missing_credential_ends_it_with_the_file(run: Run) -> None:
    path = file(run.directory)
    (run.directory / "state" / "identity" / "router" / "pod.pem").unlink()
    await run.start("-f", path)
    code, _, err = await run.ended()
    assert code == 1
    assert "cannot read" in err
    assert "pod.pem" in err


async def test_a_taken_port_ends_it_with_the_address(run: Run, tmp_path: Path) -> None:
    with contextlib.closing(await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.sockets[0].getsockname())
        path = file(run.directory, config={"statsAddr": address, "readinessAddr": "127.0.0.1:0"})
        await run.start("-f", path, "--bind-address", "127.0.0.1")
        code, _, err = await run.ended()
    assert code == 1
    assert f"listener stats: cannot listen on {address}" in err


async def test_help_names_every_flag(run: Run) -> None:
    await run.start("--help")
    code, out, _ = await run.ended()
    assert code == 0
    for flag in (
        "--file",
        "--validate",
        "--bind-address",
        "--ready-file",
        "--access-log",
        "--log-level",
    ):
        assert flag in out
