"""The dataplanes that exist, and a stage for each test.

Markers: `conformance("I-10")` names the rows that a test proves; `only("agentgateway")` marks a row
that binds one dataplane (its tests are not generated for the other: nothing is skipped);
`router(park_budget=0.6)` gives the settings of the router that the test talks to.
"""

import asyncio
import dataclasses
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.differences import DIFFERENCES
from tests.support.agentgateway_dataplane import Agentgateway
from tests.support.dataplanes import Dataplane, Router, RouterPool
from tests.support.egress_api import EgressApi, Provider
from tests.support.egress_gateway import (
    AgentgatewayEgress,
    EgressDataplane,
    EgressGateway,
    EgressSpec,
)
from tests.support.egress_pki import EgressPki
from tests.support.egress_stage import EgressStage
from tests.support.envoy_dataplane import Envoy
from tests.support.envoy_egress import EnvoyEgress
from tests.support.fake_ateapi import FakeAteapi
from tests.support.name_server import NameServer
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
        "markers", "egress_gateway(**settings): EgressSpec of the gateway that the test talks to"
    )
    config.addinivalue_line(
        "markers", "router(**settings): RouterSpec of the router that the test talks to"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, known in (("dataplane", DATAPLANES), ("egress_dataplane", EGRESS_DATAPLANES)):
        if fixture not in metafunc.fixturenames:
            continue
        wanted = {
            name for mark in metafunc.definition.iter_markers("only") for name in mark.args
        } or set(known)
        names = [name for name in known if name in wanted]
        metafunc.parametrize(fixture, names, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for the session: routers, workers and control plane outlive a test."""
    session = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        shared = {"routers", "egress_world"} & set(getattr(item, "fixturenames", ()))
        if pytest_asyncio.is_async_test(item) and shared:
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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def routers(
    pki: Pki, api: FakeAteapi, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RouterPool]:
    """Ended with the file: each Envoy holds five of the 128 inotify instances that a user may have."""
    pool = RouterPool(pki, api.address, lambda name: tmp_path_factory.mktemp(f"router-{name}"))
    try:
        yield pool
    finally:
        await pool.close()


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


# -- egress


EGRESS_DATAPLANES: dict[str, Callable[[], EgressDataplane]] = {
    "agentgateway": AgentgatewayEgress,
    "envoy": EnvoyEgress,
}


@pytest.fixture(scope="session")
def egress_pki(pki: Pki) -> EgressPki:
    return EgressPki(pki)


@dataclass
class EgressWorld:
    """What every egress gateway of the session shares."""

    api: EgressApi
    provider: Provider
    names: NameServer
    pki: EgressPki


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def egress_world(egress_pki: EgressPki, session_stack: AsyncExitStack) -> EgressWorld:
    api = EgressApi(egress_pki.pki)
    await api.start()
    session_stack.push_async_callback(api.close)
    provider = await Provider().start(egress_pki.pki)
    session_stack.push_async_callback(provider.close)
    names = await NameServer.start()
    session_stack.callback(names.close)
    return EgressWorld(api, provider, names, egress_pki)


class EgressGateways:
    """One gateway for each dataplane and spec; actors' names keep the tests apart."""

    def __init__(self, world: EgressWorld, make_directory: Callable[[str], Path]) -> None:
        self._world = world
        self._make_directory = make_directory
        self._shared: dict[tuple[str, EgressSpec], EgressGateway] = {}
        self._all: list[EgressGateway] = []

    async def shared(self, plane: EgressDataplane, spec: EgressSpec) -> EgressGateway:
        gateway = self._shared.get((plane.name, spec))
        if gateway is None or gateway.process.returncode is not None:
            gateway = self._shared[plane.name, spec] = await self.fresh(plane, spec)
        return gateway

    async def fresh(self, plane: EgressDataplane, spec: EgressSpec) -> EgressGateway:
        world = self._world
        spec = dataclasses.replace(
            spec,
            api_address=world.api.address,
            provider_address=world.provider.address,
            name_server=world.names.address,
        )
        directory = self._make_directory(plane.name)
        gateway = await plane.start(spec, world.pki, directory)
        self._all.append(gateway)
        return gateway

    async def close(self) -> None:
        for gateway in self._all:
            await gateway.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def egress_gateways(
    egress_world: EgressWorld, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EgressGateways]:
    """Ended with the file, as routers are."""
    gateways = EgressGateways(egress_world, lambda name: tmp_path_factory.mktemp(f"egress-{name}"))
    try:
        yield gateways
    finally:
        await gateways.close()


@pytest.fixture(scope="session")
def egress_dataplane(request: pytest.FixtureRequest) -> EgressDataplane:
    return EGRESS_DATAPLANES[request.param]()


@pytest_asyncio.fixture(loop_scope="session")
async def egress(
    request: pytest.FixtureRequest,
    egress_dataplane: EgressDataplane,
    egress_gateways: EgressGateways,
    egress_world: EgressWorld,
) -> AsyncIterator[EgressStage]:
    """A stage on a gateway that is shared with other tests of equal settings (`egress_gateway` marks)."""
    settings: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("egress_gateway"))):
        settings.update(mark.kwargs)
    gateway = await egress_gateways.shared(egress_dataplane, EgressSpec(**settings))
    world = egress_world
    async with AsyncExitStack() as stack:
        yield EgressStage(gateway, world.api, world.provider, world.names, world.pki, stack)
