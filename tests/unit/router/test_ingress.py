"""The whole process with a real Envoy, a scripted control plane and a real worker's end."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.support.dataplanes import Router
from tests.support.envoy_dataplane import Envoy
from tests.support.eventually import eventually
from tests.support.fake_ateapi import FakeAteapi
from tests.support.origins import answering, echo
from tests.support.pki import EDGE_CLIENT_ID, Pki
from tests.support.raw_http1 import RawHttp1, request
from tests.support.router_spec import RouterSpec
from tests.support.stage import Stage
from tests.support.worker_end import WorkerEnd

Start = Callable[..., Awaitable[Stage]]


# One loop for the module: the control plane and the worker outlive a test.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def pki(root: None, tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ends(pki: Pki) -> AsyncIterator[tuple[FakeAteapi, WorkerEnd]]:
    api, worker = await FakeAteapi(pki).start(), await WorkerEnd.start(pki)
    yield api, worker
    await worker.close()
    await api.close()


@pytest_asyncio.fixture(loop_scope="module")
async def start(
    pki: Pki, ends: tuple[FakeAteapi, WorkerEnd], tmp_path: Path
) -> AsyncIterator[Start]:
    """Starts a router of the test's own; `flags` change its command line."""
    api, worker = ends
    async with AsyncExitStack() as stack:

        async def begin(spec: RouterSpec | None = None, **flags: object) -> Stage:
            spec = replace(spec or RouterSpec(), api_address=api.address)
            router: Router = await Envoy().start(spec, pki, tmp_path, **flags)
            stack.push_async_callback(router.process.stop)
            return Stage(Envoy(), router, api, worker, pki, stack)

        yield begin


async def test_each_request_asks_and_reaches_its_actor(start: Start) -> None:
    stage = await start()
    actor, origin = await stage.actor(echo)
    for path in ("/one", "/two"):
        assert (await stage.get(actor, path)).status == 200
    assert [head.target for head in origin.heads] == ["/one", "/two"]
    assert {head.get("host") for head in origin.heads} == {"app.example"}
    assert {head.get("ate-target-actor") for head in origin.heads} == {None}
    assert stage.api.calls[actor.ref] == 2


async def test_refusals_are_those_of_the_table(start: Start) -> None:
    stage = await start()
    before = stage.api.total
    malformed = await stage.get("Not-an-actor")
    assert (malformed.status, malformed.head.get("ate-reason")) == (404, "bad-target")
    assert stage.api.total == before
    unknown = await stage.get("team/nobody")
    assert (unknown.status, unknown.head.get("ate-reason")) == (404, "actor-not-found")
    ambiguous = await stage.ask(
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    assert (ambiguous.status, ambiguous.head.get("ate-reason")) == (400, "bad-request")


async def test_a_worker_with_another_identity_gets_no_byte(start: Start) -> None:
    stage = await start()
    origin = await stage.origin(echo)
    actor = stage.actor_on(stage.worker.ip, spiffe_id="spiffe://cluster.local/ns/default/sa/other")
    stage.worker.activate(actor.ref, origin.address)
    answer = await stage.get(actor)
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    assert answer.head.get("retry-after") is not None
    assert origin.exchanges == []


@pytest.mark.parametrize(
    "uris",
    [
        ["spiffe://cluster.local/ns/web/sa/other"],
        [EDGE_CLIENT_ID, "spiffe://cluster.local/ns/web/sa/other"],
        [EDGE_CLIENT_ID, "https://example.org/"],
        None,
    ],
    ids=["another", "two ids", "an id and a URL", "none"],
)
async def test_a_client_that_is_not_exactly_on_the_list_gets_no_status(
    start: Start, pki: Pki, uris: list[str] | None
) -> None:
    stage = await start()
    credential = None if uris is None else pki.write("wrong.pem", pki.pods.issue(uris=uris))

    def context(alpn) -> ssl.SSLContext:  # type: ignore[no-untyped-def]
        made = pki.edge_client(alpn)
        if credential is not None:
            made.load_cert_chain(credential)
        return made

    for endpoint in (stage.router.web, stage.router.connect):
        said = b""
        try:
            wire = await RawHttp1.open(replace(endpoint, tls=context))
            stage.closing(wire.close)
            await wire.send(request("GET", "/", ("host", "a")))
            said = await wire.rest()
        except OSError:
            pass
        assert said == b""


async def test_sigterm_drains_releases_the_hook_and_exits(start: Start, tmp_path: Path) -> None:
    marker = tmp_path / "drained"
    marker.write_text("of an earlier run")
    stage = await start()
    assert not marker.exists()
    assert await stage.router.ready() == 200
    actor, _ = await stage.actor(answering(200, b"ok"))
    idle = await stage.http1()
    assert (await idle.ask(request("GET", "/", ("host", "a"), actor.header))).data == b"ok"
    assert await stage.router.process.stop() == 0
    assert await idle.rest() == b""
    assert marker.exists()


async def test_the_status_page_holds_no_query_string(start: Start) -> None:
    stage = await start()
    actor, _ = await stage.actor(echo)
    await stage.get(actor, "/path?token=secret")
    address = stage.router.process.ready["status"]
    assert address.startswith("127.0.0.1:")
    async with httpx.AsyncClient(trust_env=False) as client:
        page = await client.get(f"http://{address}/statusz", headers={"accept": "application/json"})
    assert "secret" not in page.text
    status = page.json()
    assert (status["state"], status["requests"][0]["path"]) == ("serving", "/path")
    assert status["requests"][0]["outcome"] == "ok"
    assert status["flags"]["--parked-request-max"] == 1024


async def test_the_router_ends_when_its_envoy_does(start: Start) -> None:
    stage = await start()
    os.kill(stage.router.process.ready["envoy_pid"], signal.SIGKILL)
    assert await stage.router.process.wait() == 1
    assert "Envoy ended by signal 9" in stage.router.process.log


async def test_envoy_ends_when_its_router_is_killed(start: Start) -> None:
    stage = await start()
    envoy = Path(f"/proc/{stage.router.process.ready['envoy_pid']}/exe")
    assert envoy.exists()
    await stage.router.process.kill()
    await eventually(lambda: not envoy.exists())


async def test_a_certificate_that_envoy_refuses_ends_the_start_with_its_words(
    start: Start, pki: Pki
) -> None:
    broken = pki.write("broken.pem", b"no certificate")
    with pytest.raises(RuntimeError, match="Envoy refused its Secret resources") as caught:
        await asyncio.wait_for(start(envoy_cert_path=broken), 30)
    assert "certificate chain" in str(caught.value)


async def test_a_file_that_is_missing_is_named_with_its_flag(start: Start) -> None:
    with pytest.raises(RuntimeError, match="--ingress-client-ca-file: cannot read /nowhere"):
        await start(ingress_client_ca_file="/nowhere")
