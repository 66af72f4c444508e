"""The programs that can carry the ingress, behind one face for the same test bodies."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import grpc

from tests.support.endpoint import Endpoint
from tests.support.pki import Pki
from tests.support.router_process import Metrics, RouterProcess, scrape, status_of
from tests.support.router_spec import RouterSpec


@dataclass(frozen=True)
class Router:
    """A running router and its listeners."""

    process: RouterProcess
    spec: RouterSpec
    # Direct requests over TLS, and CONNECT over TLS: both dataplanes have them.
    web: Endpoint
    connect: Endpoint
    # The native dataplane's plaintext ones.
    plain: Endpoint | None
    plain_connect: Endpoint | None
    stats: str
    readiness: str
    # What a gRPC client of `web` needs, and what it must call the server.
    grpc_credentials: grpc.ChannelCredentials

    async def metrics(self) -> Metrics:
        return await scrape(self.stats)

    async def ready(self) -> int:
        return await status_of(self.readiness, "/readyz")


class Dataplane(Protocol):
    """How to run one; and the few answers in which they differ."""

    name: str
    # The park budget is spent and no worker has room.
    no_capacity_status: int
    no_capacity_grpc: str
    # An actor broke off before anything of its answer was understood.
    broke_off_status: int
    # Whether assignments are remembered, and stale ones looked up again.
    caches: bool
    # The setting that ends a connection on which a client never began to speak.
    mute_client_limit: str
    # TLS connections to one worker, at most, while its stream limit is not reached.
    worker_connections: int

    async def start(self, spec: RouterSpec, pki: Pki, directory: Path) -> Router: ...


class RouterPool:
    """One router for each dataplane and spec; actors' names keep the tests apart."""

    def __init__(self, pki: Pki, api_address: str, make_directory: Callable[[str], Path]) -> None:
        self._pki = pki
        self._api_address = api_address
        self._make_directory = make_directory
        self._shared: dict[tuple[str, RouterSpec], Router] = {}
        self._all: list[Router] = []

    async def shared(self, dataplane: Dataplane, spec: RouterSpec) -> Router:
        key = (dataplane.name, spec)
        router = self._shared.get(key)
        if router is None or router.process.returncode is not None:
            router = self._shared[key] = await self.fresh(dataplane, spec)
        return router

    async def fresh(self, dataplane: Dataplane, spec: RouterSpec) -> Router:
        """A router that no other test sees."""
        if spec.api_address is None:
            spec = dataclasses.replace(spec, api_address=self._api_address)
        router = await dataplane.start(spec, self._pki, self._make_directory(dataplane.name))
        self._all.append(router)
        return router

    async def close(self) -> None:
        for router in self._all:
            if router.process.returncode is None:
                await router.process.kill()
