"""What only the gateway on Envoy has: a further processor, a key in a process of its own, pages, a drain."""

import asyncio
import dataclasses
import json
import secrets
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import psutil
import pytest
import pytest_asyncio

from tests.conformance.conftest import EgressWorld
from tests.support.additional_processor import AdditionalProcessor
from tests.support.egress_gateway import EgressSpec
from tests.support.egress_stage import EgressStage, http, https
from tests.support.envoy_egress import EnvoyEgress
from tests.support.eventually import eventually
from tests.support.origins import answering, echo, held
from tests.support.raw_http1 import request
from tests.support.router_process import status_of

pytestmark = pytest.mark.only("envoy")

Own = Callable[..., Awaitable[EgressStage]]


@pytest_asyncio.fixture(loop_scope="session")
async def own(egress_world: EgressWorld, tmp_path: Path) -> AsyncIterator[Own]:
    """A stage on a gateway of the test's own; `flags` change its command line."""
    world = egress_world
    async with AsyncExitStack() as stack:

        async def begin(*, hidden: Path | None = None, **flags: object) -> EgressStage:
            spec = dataclasses.replace(
                EgressSpec(),
                api_address=world.api.address,
                provider_address=world.provider.address,
                name_server=world.names.address,
            )
            gateway = await EnvoyEgress().start(spec, world.pki, tmp_path, hidden=hidden, **flags)
            stack.push_async_callback(gateway.kill)
            return EgressStage(gateway, world.api, world.provider, world.names, world.pki, stack)

        yield begin


@pytest_asyncio.fixture(loop_scope="session")
async def additional() -> AsyncIterator[AdditionalProcessor]:
    processor = await AdditionalProcessor().start()
    yield processor
    await processor.close()


@pytest.mark.conformance("E-19")
async def test_a_further_processor_sees_what_the_origin_gets_and_cannot_send_it_elsewhere(
    own: Own, additional: AdditionalProcessor
) -> None:
    egress = await own(experimental_additional_egress_extproc_service=additional.address)
    uri = "ate-secret://secrets.example/main/additional"
    egress.provider.secrets[uri] = b"s3cret"
    name, origin = await egress.secure_web(echo)
    rule = {"replaceHeaders": [{"header": "x-key", "credentialUri": uri}]}
    actor = egress.actor(https(name, ports=[origin.port], **rule))
    told = json.loads(
        (await egress.get_secure(actor, origin.port, name, ("x-key", "placeholder"))).data
    )
    assert ["x-added", "by another"] in told["fields"]
    assert ["host", f"{name}:{origin.port}"] in told["fields"]
    assert additional.seen[0]["x-key"] == "s3cret"
    refused = await egress.get_secure(actor, origin.port, name, ("x-refuse", "1"))
    assert refused.status == 418
    # Ours comes first: what it denies, nobody else is shown.
    before = len(additional.seen)
    assert (await egress.get_secure(actor, origin.port, name, ("host", "x"))).status == 400
    assert len(additional.seen) == before
    await additional.close()
    assert (await egress.get_secure(actor, origin.port, name)).status == 503


@pytest.mark.conformance("E-20")
async def test_neither_envoy_nor_the_deciding_process_can_read_the_interception_key(
    own: Own, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o700)
    egress = await own(hidden=keys)
    key = keys / "interception.pem"

    # Interception works ...
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(https(name, ports=[origin.port]))
    assert (await egress.get_secure(actor, origin.port, name)).status == 200
    # ... the minter sees the key, and the two that carry it see an empty directory ...
    (mint,) = egress.gateway.helpers
    gateway = egress.gateway.process
    assert seen_by(mint.pid, keys) == [key.name]
    for pid in (gateway.pid, gateway.ready["envoy_pid"]):
        assert seen_by(pid, keys) == []
        # ... with none of the capabilities by which they could undo that.
        assert not capabilities(pid) & (1 << CAP_SYS_ADMIN | 1 << CAP_SYS_PTRACE | 1 << CAP_MKNOD)
        # Nor does it come to them by another way: no argument, no variable, no open file.
        process = psutil.Process(pid)
        assert not [
            word for word in [*process.cmdline(), *process.environ().values()] if key.name in word
        ]
        assert not [each for each in process.open_files() if each.path.startswith(str(keys))]


CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_MKNOD = 19, 21, 27


def capabilities(pid: int) -> int:
    """All that the process may ever have."""
    status = Path(f"/proc/{pid}/status").read_text()
    sets = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Cap"))
    return int(sets["CapBnd"], 16) | int(sets["CapPrm"], 16)


def seen_by(pid: int, directory: Path) -> list[str]:
    return [entry.name for entry in Path(f"/proc/{pid}/root{directory}").iterdir()]


@pytest.mark.conformance("E-14")
async def test_only_the_gateways_own_account_may_ask_for_decisions(own: Own) -> None:
    egress = await own()
    # Whoever can ask speaks for any actor, and is told its credentials.
    asked_at = Path(egress.gateway.process.ready["extproc"])
    assert stat.S_IMODE(asked_at.stat().st_mode) == 0o600
    gateway = psutil.Process(egress.gateway.process.pid)
    ports = {
        each.laddr.port
        for process in (gateway, *gateway.children(recursive=True))
        for each in process.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    }
    ready = egress.gateway.process.ready
    named = ["xds", "stats", "status", "envoy_admin", "denials"]
    known = {ready[name] for name in named} | set(ready["listeners"]["tunnels"])
    assert ports == {int(address.rpartition(":")[2]) for address in known}
    assert await egress.gateway.process.stop() == 0
    assert not asked_at.exists()


@pytest.mark.conformance("E-14", "E-20")
async def test_no_secret_shows_in_a_log_a_page_or_envoys_admin_api(own: Own) -> None:
    egress = await own(log_level="debug")
    secret, uri = secrets.token_hex(12), "ate-secret://secrets.example/main/secrecy"
    egress.provider.secrets[uri] = secret.encode()
    name, origin = await egress.secure_web(echo)
    rule = {"replaceHeaders": [{"header": "authorization", "credentialUri": uri}]}
    actor = egress.actor(https(name, ports=[origin.port], **rule))
    wire = await egress.tls(actor, name, origin.port)
    sent = [("host", name), ("authorization", "placeholder"), ("cookie", "kept=own-secret")]
    answer = await wire.ask(request("GET", "/path?token=own-secret", *sent))
    assert secret.encode() in answer.data
    pages = egress.gateway.pages
    dumps = ("config_dump?include_eds", "clusters", "stats", "certs", "listeners")
    asked = [f"{pages['envoy_admin']}/{path}" for path in dumps]
    asked += [f"{pages['stats']}/metrics", f"{pages['status']}/statusz?format=json"]
    async with httpx.AsyncClient(trust_env=False) as client:
        seen = [(await client.get(f"http://{page}")).text for page in asked]
    assert json.loads(seen[-1])["requests"][0]["path"] == "/path"
    assert "sdsmint" in seen[0]
    seen.append(egress.gateway.process.log)
    for text in seen:
        assert secret not in text
        assert "own-secret" not in text
        assert "PRIVATE KEY" not in text


@pytest.mark.conformance("E-22")
async def test_pages_say_how_the_gateway_is(own: Own) -> None:
    egress = await own()
    pages = egress.gateway.pages
    assert await status_of(pages["readiness"], "/readyz") == 200
    assert await status_of(pages["readiness"], "/healthz") == 200
    name, origin = await egress.web(answering(200))
    wire = await egress.tunnel(egress.actor(http(name, ports=[origin.port])), origin.port)
    assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200
    async with httpx.AsyncClient(trust_env=False) as client:
        shown = (await client.get(f"http://{pages['status']}/statusz?format=json")).json()
    assert (shown["state"], shown["tunnels"]) == ("serving", 1)
    assert [each["outcome"] for each in shown["requests"]] == ["ok", "ok"]
    assert shown["health"]["envoy"]["healthy"]
    await wire.close()

    async def closed() -> bool:
        async with httpx.AsyncClient(trust_env=False) as client:
            shown = (await client.get(f"http://{pages['status']}/statusz?format=json")).json()
        return bool(shown["tunnels"] == 0)

    await eventually(closed)


@pytest.mark.conformance("E-24")
async def test_a_drain_lets_what_runs_end_and_says_so(own: Own, tmp_path: Path) -> None:
    egress = await own()
    gate = asyncio.Event()
    name, origin = await egress.web(held(gate, answering(200, b"whole")))
    wire = await egress.tunnel(egress.actor(http(name, ports=[origin.port])), origin.port)
    await wire.send(request("GET", "/", ("host", name)))
    await origin.wait_for_requests(1)
    egress.gateway.process.terminate()

    async def not_ready() -> bool:
        return await status_of(egress.gateway.pages["readiness"], "/readyz") == 503

    await eventually(not_ready)
    assert egress.gateway.process.returncode is None
    gate.set()
    assert (await wire.response()).data == b"whole"
    assert await egress.gateway.process.wait() == 0
    assert (tmp_path / "drained").exists()


@pytest.mark.conformance("E-24")
async def test_tunnels_end_with_the_process_that_decides_for_them(own: Own) -> None:
    egress = await own()
    name, origin = await egress.web(answering(200))
    wire = await egress.tunnel(egress.actor(http(name, ports=[origin.port])), origin.port)
    assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200
    await egress.gateway.process.kill()
    async with asyncio.timeout(10):
        assert await wire.reader.read() == b""
