"""An Envoy that somebody else started, as Kubernetes does: served, found again after a restart, drained."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from atenet.router.binary import find_envoy

from tests.support import envoy_flags
from tests.support.addresses import unused_port
from tests.support.endpoint import Endpoint
from tests.support.eventually import eventually
from tests.support.fake_ateapi import FakeAteapi
from tests.support.origins import Origin, echo
from tests.support.pki import Pki
from tests.support.raw_http1 import ask, request
from tests.support.resume_steps import Placement
from tests.support.router_process import RouterProcess, program
from tests.support.router_spec import RouterSpec
from tests.support.worker_end import WorkerEnd

ACTOR = "team/elsewhere"


@asynccontextmanager
async def envoy(flags: list[str], directory: Path) -> AsyncIterator[None]:
    """Runs with what `atenet router bootstrap` writes, until the block ends."""
    file = directory / "bootstrap.json"
    printed = await asyncio.create_subprocess_exec(
        *(program("atenet"), "router", "bootstrap", *flags, "--output", str(file))
    )
    assert await printed.wait() == 0
    with (directory / "envoy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(find_envoy(None), "--config-path", file, "--concurrency", "1"),
            *("--disable-hot-restart", "--log-level", "error"),
            stdout=log,
            stderr=log,
        )
    try:
        yield
        assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


async def test_an_envoy_started_elsewhere_outlives_its_router_and_is_drained_by_the_next(
    pki: Pki, ends: tuple[FakeAteapi, WorkerEnd], tmp_path: Path
) -> None:
    api, worker = ends
    state, marker = tmp_path / "state", tmp_path / "drained"
    state.mkdir()
    ports = [unused_port() for _ in range(3)]
    spec = replace(RouterSpec(), api_address=api.address)
    flags = envoy_flags.flags(
        spec,
        pki,
        state,
        run_envoy="false",
        port_xds=ports[0],
        port_extproc=ports[1],
        envoy_admin_address=f"127.0.0.1:{ports[2]}",
        drain_complete_file=marker,
    )
    origin = await Origin.start(echo)
    api.place(Placement(ACTOR, worker.ip, uid=worker.activate(ACTOR, origin.address).uid))
    get = request("GET", "/", ("host", "a"), ("ate-target-actor", ACTOR))

    async def start() -> tuple[RouterProcess, Endpoint]:
        router = await RouterProcess.start([program("atenet"), "router", *flags], tmp_path)
        where = router.ready["listeners"]["ingress"][0]
        return router, Endpoint.parse(where, pki.known_client)

    async with envoy(flags, tmp_path):
        router, web = await start()
        assert (await ask(web, get)).status == 200
        await router.kill()
        # Fail closed: nobody decides, so nobody comes through.
        unheard = await ask(web, get)
        assert (unheard.status, unheard.head.get("ate-reason")) == (
            503,
            "control-plane-unavailable",
        )
        (tmp_path / "ready.json").unlink()
        router, again = await start()
        assert again.address == web.address

        async def served() -> bool:
            return (await ask(web, get)).status == 200

        await eventually(served)
        hook = await asyncio.create_subprocess_exec(
            *(program("atenet"), "router", "wait-drained"),
            *("--drain-complete-file", str(marker), "--timeout", "30s"),
        )
        assert await router.stop() == 0
        assert await hook.wait() == 0
    await origin.close()
