"""Whole routers, each of a test's own: a real Envoy, a scripted control plane, a real worker's end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.dataplanes import Router
from tests.support.envoy_dataplane import Envoy
from tests.support.fake_ateapi import FakeAteapi
from tests.support.pki import Pki
from tests.support.router_spec import RouterSpec
from tests.support.stage import Stage
from tests.support.worker_end import WorkerEnd

Start = Callable[..., Awaitable[Stage]]


@pytest.fixture(scope="module")
def pki(root: None, tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest_asyncio.fixture(scope="module")
async def ends(pki: Pki) -> AsyncIterator[tuple[FakeAteapi, WorkerEnd]]:
    api, worker = await FakeAteapi(pki).start(), await WorkerEnd.start(pki)
    yield api, worker
    await worker.close()
    await api.close()


@pytest_asyncio.fixture
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
