"""One control plane process: put together, served, drained."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator

import grpc.aio
from prometheus_client import CONTENT_TYPE_LATEST

from atenet.ateapi.audit import Keeper
from atenet.ateapi.callers import Access
from atenet.ateapi.denials import Denials, DenialSources
from atenet.ateapi.ending import ended
from atenet.ateapi.listening import Listening, listening
from atenet.ateapi.metrics import Metrics
from atenet.ateapi.mint import CertificateMint, TokenMint, Vault
from atenet.ateapi.mint import keys as signing_keys
from atenet.ateapi.mint.issuer import IssuerServer
from atenet.ateapi.nodes import Nodes
from atenet.ateapi.observed import ObservedStore
from atenet.ateapi.oidc import verifier_for
from atenet.ateapi.roles import DEFAULT_BINDINGS, Roles
from atenet.ateapi.service import Api
from atenet.ateapi.service.introspection import Health
from atenet.ateapi.service.support import RouterSupport
from atenet.ateapi.service.table import add_services
from atenet.ateapi.settings import Settings
from atenet.ateapi.snapshots import SnapshotStore, Sweeper
from atenet.ateapi.store import BusyError, Store
from atenet.ateapi.store.opening import open_store
from atenet.ateapi.tracing import Tracing, tracing_to
from atenet.ateapi.watch import Watch
from atenet.ateapi.workflows import Context, Operations
from atenet.daemon import Stop, announce_ready
from atenet.pages import Page, PageServer, Query
from atenet.rpc import also_without_certificates
from atenet.snapshots import open_objects

__all__ = ["run", "serving"]

_log = logging.getLogger(__name__)
_CAPACITY_SECONDS = 2.0
# A front that does not say what it answered holds no page up for longer.
_COUNT_SECONDS = 1.0


async def run(settings: Settings, stop: Stop) -> None:
    """Serves until `stop` is set, then drains. Raises AteError when it cannot start."""
    async with serving(settings) as addresses:
        announce_ready(settings.ready_file, addresses)
        await stop.wait()
        _log.info("draining")


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[dict[str, str]]:
    """The running control plane; yields its bound addresses (`grpc`, `tokens`, `stats`, `issuer`)."""
    certificates = _certificates(settings)
    tracing = _tracing(settings)
    opened = await open_store(settings.store_location, settings.store_lease)
    store = ObservedStore(opened, tracing, time.time)
    nodes = Nodes(settings.client_credential, settings.node_roots, tracing)
    denials = _denials(settings)
    try:
        api = _api(settings, store, nodes)
        api.tracing, api.denials = tracing, denials
        api.certificates, api.tokens = certificates, await _tokens(settings, store)
        with listening(settings, api.metrics.answered) as doors:
            health = add_services(doors.server, api)
            pages = _pages(api.metrics, doors, health)
            with (
                PageServer("--stats-listen", settings.stats_listen, pages) as stats,
                _issuer(settings, api.tokens) as issuer,
            ):
                tokens = _token_address(settings, doors.server)
                async with _started(api, doors, health, settings) as address:
                    yield {"grpc": address, **tokens, "stats": str(stats.address), **issuer}
    finally:
        if denials is not None:
            denials.close()
        await nodes.close()
        await store.close()
        await tracing.close()


def _api(settings: Settings, store: Store, nodes: Nodes) -> Api:
    metrics = Metrics()
    snapshots = SnapshotStore(open_objects(settings.snapshots))
    context = Context(
        store=store,
        nodes=nodes,
        snapshots=snapshots,
        sweeper=Sweeper(store, snapshots),
        metrics=metrics,
        clock=time.time,
        worker_timeout=settings.worker_timeout,
        node_timeout=settings.node_timeout,
        drain_wait=settings.drain_wait,
        pack=settings.placement == "pack",
    )
    operations = Operations(store)
    metrics.operations.set_function(lambda: operations.count)
    access = Access(
        Roles([*DEFAULT_BINDINGS, *settings.bindings]),
        verifier_for(settings),
        fronted=settings.fronted,
    )
    return Api(
        store=store,
        context=context,
        operations=operations,
        watch=Watch(context, operations),
        access=access,
        metrics=metrics,
        support=RouterSupport(access, metrics),
        default_sandbox=settings.default_sandbox,
        clock=time.time,
    )


@contextlib.asynccontextmanager
async def _started(
    api: Api, doors: Listening, health: Health, settings: Settings
) -> AsyncIterator[str]:
    """Serves and watches; on leaving: not healthy, no new calls, running ones and workflows end.

    Yields the address that callers connect to.
    """
    subscriptions = [api.store.subscribe(s) for s in (api.watch.heard, api.support.heard)]
    await api.watch.started()
    address = await doors.open()
    health.serving()
    background = [
        asyncio.create_task(api.watch.run(), name="watch"),
        asyncio.create_task(api.context.sweeper.run(), name="sweeper"),
        asyncio.create_task(_count_capacity(api), name="capacity"),
        asyncio.create_task(Keeper(api.store, settings.audit_keep, api.clock).run(), name="audit"),
    ]
    try:
        yield address
    finally:
        deadline = time.monotonic() + settings.drain_timeout
        health.drain()
        for unsubscribe in subscriptions:
            unsubscribe()
        api.support.close()
        await ended(background)
        await doors.close(settings.drain_timeout)
        await api.operations.drain(max(0.0, deadline - time.monotonic()))
        await api.watch.close()


async def _count_capacity(api: Api) -> None:
    """What /metrics shows of workers and slots is this old at most."""
    while True:
        with contextlib.suppress(BusyError):
            api.metrics.capacity(await api.store.read(lambda tx: tx.workers.totals()))
        await asyncio.sleep(_CAPACITY_SECONDS)


def _pages(
    metrics: Metrics, doors: Listening, health: Health
) -> dict[str, Callable[[Query], Page]]:
    """What operators and probes see on the stats address."""
    loop = asyncio.get_running_loop()

    def shown(_: Query) -> Page:
        # On a thread of the page's: a call that was answered before is in the count.
        counting = asyncio.run_coroutine_threadsafe(doors.count(), loop)
        with contextlib.suppress(TimeoutError, concurrent.futures.CancelledError):
            counting.result(_COUNT_SECONDS)
        return Page(metrics.text().decode(), content_type=CONTENT_TYPE_LATEST)

    def ready(_: Query) -> Page:
        if health.is_serving:
            return Page("ready\n")
        return Page("not serving\n", "503 Service Unavailable")

    return {"/metrics": shown, "/readyz": ready, "/healthz": lambda _: Page("alive\n")}


def _tracing(settings: Settings) -> Tracing:
    collector = settings.otlp_collector_address
    return tracing_to(str(collector) if collector else None, settings.trace_sampling)


def _denials(settings: Settings) -> Denials | None:
    if settings.egress_denials is None or settings.egress_denials_roots is None:
        return None
    return Denials(
        DenialSources(
            gateways=settings.egress_denials,
            roots=settings.egress_denials_roots,
            credential=settings.client_credential,
            worker_port=settings.worker_denials_port,
            worker_roots=settings.node_roots,
        )
    )


def _token_address(settings: Settings, server: grpc.aio.Server) -> dict[str, str]:
    """Where people come without a certificate, if they may."""
    if settings.token_listen is None:
        return {}
    bound = also_without_certificates(
        server,
        str(settings.token_listen),
        credential=settings.server_credential,
        roots=settings.client_roots,
    )
    return {"tokens": bound}


def _certificates(settings: Settings) -> CertificateMint | None:
    """A bad authority is refused by name at the start, not at the first certificate."""
    if settings.actor_ca_cert is None or settings.actor_ca_key is None:
        return None
    return CertificateMint(settings.actor_ca_cert, settings.actor_ca_key)


async def _tokens(settings: Settings, store: Store) -> TokenMint | None:
    if settings.issuer is None:
        return None
    vault = Vault(settings.keys_secret)
    await signing_keys.ensure(store, vault, time.time())
    return TokenMint(store, settings.issuer, vault)


@contextlib.contextmanager
def _issuer(settings: Settings, tokens: TokenMint | None) -> Iterator[dict[str, str]]:
    """The issuer's pages, if they are wanted; its address."""
    if tokens is None or settings.issuer_listen is None:
        yield {}
        return
    listen, credential = settings.issuer_listen, settings.server_credential
    with IssuerServer(listen, credential, tokens, time.time) as server:
        yield {"issuer": server.address}
