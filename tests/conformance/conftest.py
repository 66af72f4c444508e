"""The dataplanes that exist, and a stage for each test.

Markers: `conformance("I-10")` names the rows that a test proves; `only("agentgateway")` marks a row
that binds one dataplane (its tests are not generated for the other: nothing is skipped);
`router(park_budget=0.6)` gives the settings of the router that the test talks to.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.conformance.differences import DIFFERENCES
from tests.support.agentgateway_dataplane import Agentgateway
from tests.support.dataplanes import Dataplane, Router, RouterPool
from tests.support.envoy_dataplane import Envoy
from tests.support.fake_ateapi import FakeAteapi
from tests.support.pki import Pki
from tests.support.router_spec import RouterSpec
from tests.support.stage import Stage
from tests.support.worker_end import WorkerEnd

# Several times what such a test takes where it does not wait for ever.
_WAITING_SECONDS = 4.0

DATAPLANES: dict[str, Callable[[], Dataplane]] = {"agentgateway": Agentgateway, "envoy": Envoy}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "only(*dataplanes): the row binds these dataplanes and no other"
    )
    config.addinivalue_line(
        "markers", "router(**settings): RouterSpec of the router that the test talks to"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dataplane" not in metafunc.fixturenames:
        return
    wanted = {
        name for mark in metafunc.definition.iter_markers("only") for name in mark.args
    } or set(DATAPLANES)
    names = [name for name in DATAPLANES if name in wanted]
    metafunc.parametrize("dataplane", names, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for the session: routers, workers and control plane outlive a test."""
    session = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if pytest_asyncio.is_async_test(item) and "routers" in getattr(item, "fixturenames", ()):
            item.add_marker(session, append=False)
    _expect_differences(items)


def _expect_differences(items: list[pytest.Item]) -> None:
    expected = {name: difference for difference in DIFFERENCES for name in difference.names()}
    for item in items:
        difference = expected.get(item.name)
        if difference is None:
            continue
        item.add_marker(pytest.mark.xfail(reason=difference.reason, strict=True))
        if difference.waits:
            assert isinstance(item, pytest.Function)
            item.obj = _given_up(item.obj)


def _given_up(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def limited(*args: object, **kwargs: object) -> None:
        async with asyncio.timeout(_WAITING_SECONDS):
            await test(*args, **kwargs)

    return limited


@pytest.fixture(scope="session")
def dataplane(request: pytest.FixtureRequest) -> Dataplane:
    return DATAPLANES[request.param]()


@pytest.fixture(scope="session")
def pki(root: None, tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest_asyncio.fixture(scope="session", loop_scope="session", name="session_stack")
async def _session_stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(pki: Pki, session_stack: AsyncExitStack) -> FakeAteapi:
    server = await FakeAteapi(pki).start()
    session_stack.push_async_callback(server.close)
    return server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker(pki: Pki, session_stack: AsyncExitStack) -> WorkerEnd:
    end = await WorkerEnd.start(pki)
    session_stack.push_async_callback(end.close)
    return end


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def routers(
    pki: Pki,
    api: FakeAteapi,
    session_stack: AsyncExitStack,
    tmp_path_factory: pytest.TempPathFactory,
) -> RouterPool:
    pool = RouterPool(pki, api.address, lambda name: tmp_path_factory.mktemp(f"router-{name}"))
    session_stack.push_async_callback(pool.close)
    return pool


def _spec(request: pytest.FixtureRequest) -> RouterSpec:
    settings: dict[str, object] = {}
    # The closest marker wins, setting by setting.
    for mark in reversed(list(request.node.iter_markers("router"))):
        settings.update(mark.kwargs)
    return RouterSpec(**settings)  # type: ignore[arg-type]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(
    request: pytest.FixtureRequest,
    dataplane: Dataplane,
    routers: RouterPool,
    api: FakeAteapi,
    worker: WorkerEnd,
    pki: Pki,
) -> AsyncIterator[Stage]:
    """A stage on a router that is shared with other tests of equal settings."""
    router = await routers.shared(dataplane, _spec(request))
    async with AsyncExitStack() as stack:
        yield Stage(dataplane, router, api, worker, pki, stack)


StageMaker = Callable[..., Awaitable[Stage]]


@pytest_asyncio.fixture(loop_scope="session")
async def own_stage(
    request: pytest.FixtureRequest,
    dataplane: Dataplane,
    routers: RouterPool,
    api: FakeAteapi,
    worker: WorkerEnd,
    pki: Pki,
) -> AsyncIterator[StageMaker]:
    """Makes a stage on a router of the test's own: to stop it, to count on it, to fill its lot."""
    async with AsyncExitStack() as stack:

        async def make(**settings: object) -> Stage:
            router: Router = await routers.fresh(dataplane, RouterSpec(**settings))  # type: ignore[arg-type]
            stack.push_async_callback(router.process.stop)
            return Stage(dataplane, router, api, worker, pki, stack)

        yield make
