"""`ateworker`: puts the parts together, serves until told to stop, leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import click
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from atenet import daemon, flags
from atenet._engine import EngineError, Tunnel, log_to_stderr, socket_in_netns
from atenet.denials.server import serving_denials
from atenet.denials.settings import DenialsSettings
from atenet.errors import AteError
from atenet.gvisor import find_runsc
from atenet.identity.public_roots import public_roots
from atenet.images import ImageStore
from atenet.pages import Page, PageServer, Query
from atenet.proto import ateapi_pb2, ateworker_pb2_grpc
from atenet.rpc.unix import serve_unix
from atenet.worker.egress import EngineCapture, NodeAgent, WorkerEgress, capture_config
from atenet.worker.egress.sandbox_trust import SandboxTrust
from atenet.worker.ingress import TunnelIngress, tunnel_config
from atenet.worker.network import (
    Capturing,
    PairPool,
    clear_leftovers,
    hold_prefix,
    own_addresses,
)
from atenet.worker.registration import Registration, new_epoch
from atenet.worker.sandbox import (
    Cgroups,
    Common,
    Freezer,
    GvisorSandbox,
    NullSandbox,
    ProcessSandbox,
    Sandbox,
    own_group,
)
from atenet.worker.sandbox.cgroup import CGROUPS
from atenet.worker.service import WorkerService
from atenet.worker.settings import WorkerSettings
from atenet.worker.supervisor import Supervisor
from atenet.worker.workload import Parts

__all__ = ["main", "serve"]

_CLOSE_SECONDS = 5.0
_LAST_BEAT_SECONDS = 1.0
# Beyond one thread per actor: networks made ahead, and calls for actors on their way out.
_SPARE_THREADS = 8


@click.command(context_settings={"max_content_width": 100})
@flags.options_for(WorkerSettings)
def main(settings: WorkerSettings) -> None:
    """Hosts actors for this node's agent. Needs root, bubblewrap, iproute2 and nftables."""
    daemon.run(settings.name, settings.log_level, lambda stop: serve(settings, stop))


async def serve(settings: WorkerSettings, stop: daemon.Stop) -> None:
    """Runs the worker until `stop` is set. Raises AteError when it cannot start."""
    if os.geteuid() != 0:
        raise AteError("a worker needs root", hint="start it with sudo, or as a privileged pod")
    log_to_stderr(settings.name, settings.log_level)
    if settings.ready_file is not None:  # an earlier start's, of the same pod
        settings.ready_file.unlink(missing_ok=True)
    # These threads live as long as the process: actors die with the thread that started them.
    threads = ThreadPoolExecutor(settings.slots + _SPARE_THREADS, thread_name_prefix="worker")
    async with AsyncExitStack() as stack:
        stack.callback(threads.shutdown)
        stack.enter_context(daemon.only_one(settings.state_dir, "--state-dir"))
        stack.enter_context(hold_prefix(settings.net_prefix))
        sandboxes = await _clean_start(settings, threads)
        stack.push_async_callback(asyncio.to_thread, _clear, sandboxes)
        ingress, bound = await stack.enter_async_context(_tunnel(settings, threads))
        capture = await stack.enter_async_context(_capture(settings, threads))
        egress = await stack.enter_async_context(_egress(settings, capture))
        pages = _stats(settings, capture, stack) | _denials(settings, capture, stack)
        networks = await _networks(settings, threads)
        stack.push_async_callback(networks.close)
        # A machine that cannot make one is told so now, and not when the first actor is due.
        await networks.release(await networks.acquire())
        common = await stack.enter_async_context(_trust(settings))
        supervisor, registration = _hosting(settings, networks, sandboxes, ingress, egress, common)
        stack.push_async_callback(registration.close)
        await stack.enter_async_context(
            serve_unix(
                settings.socket,
                lambda server: ateworker_pb2_grpc.add_WorkerServicer_to_server(
                    WorkerService(supervisor), server
                ),
            )
        )
        networks.fill()
        loops = {"registration with the node agent": registration.run()}
        async with _watched(loops | {"the watch over egress policies": egress.run()}, stop):
            await _first(registration.accepted.wait(), stop.wait())
            if registration.accepted.is_set():
                daemon.announce_ready(settings.ready_file, {"atunnel": bound, **pages})
            await stop.wait()
            await supervisor.close()
            await _last_beat(registration)


async def _clean_start(
    settings: WorkerSettings, threads: ThreadPoolExecutor
) -> tuple[Sandbox, ...]:
    """What an interrupted run of this worker left is gone before anything new is made."""

    def clear() -> tuple[Sandbox, ...]:
        clear_leftovers(settings.net_prefix)
        sandboxes = _sandboxes(settings, threads)
        _clear(sandboxes)
        return sandboxes

    return await asyncio.to_thread(clear)


def _clear(sandboxes: tuple[Sandbox, ...]) -> None:
    for sandbox in sandboxes:
        sandbox.clear()


def _sandboxes(settings: WorkerSettings, threads: ThreadPoolExecutor) -> tuple[Sandbox, ...]:
    """The worker's own class first."""
    if settings.sandbox == NullSandbox.sandbox_class:
        return (NullSandbox(),)
    root = own_group() if settings.cgroup_root == "own" else CGROUPS
    prefix, cgroups = settings.net_prefix, Cgroups(settings.net_prefix, root)
    process = ProcessSandbox(
        settings.state_dir / "run", cgroups, threads, freezer=Freezer(settings.net_prefix, root)
    )
    if settings.sandbox == ProcessSandbox.sandbox_class:
        return (process,)
    runsc = settings.runsc or find_runsc()
    if runsc is None:
        raise AteError(
            "--sandbox gvisor: there is no runsc that is recent enough",
            hint="`make runsc` builds it (needs Go), or name one with --runsc; images have it with"
            " `make images GVISOR=yes`",
        )
    return (
        GvisorSandbox(
            runsc,
            prefix,
            cgroups,
            threads,
            disk=settings.state_dir / "gvisor",
            images=None if settings.images is None else ImageStore(settings.images),
        ),
        process,
    )


@asynccontextmanager
async def _tunnel(
    settings: WorkerSettings, threads: ThreadPoolExecutor
) -> AsyncIterator[tuple[TunnelIngress, str]]:
    try:
        tunnel = Tunnel(tunnel_config(settings.listen, settings.credential, settings.trust))
        bound = tunnel.start()
    except (ValueError, EngineError) as e:
        raise AteError(f"atunnel: {e}", hint="see --listen, --credential and --trust") from e
    ingress = TunnelIngress(tunnel, threads)
    try:
        yield ingress, bound
    finally:
        await ingress.close(_CLOSE_SECONDS)


@asynccontextmanager
async def _trust(settings: WorkerSettings) -> AsyncIterator[Common]:
    """What every container gets to trust; kept up to date while the block lasts."""
    interception = settings.egress_interception_trust
    if interception is None:
        yield Common()
        return
    public = settings.egress_public_roots or public_roots()
    trust = SandboxTrust(settings.state_dir / "trust", interception, public)
    await asyncio.to_thread(trust.write)
    following = asyncio.create_task(trust.follow())
    try:
        yield trust.common
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@asynccontextmanager
async def _capture(
    settings: WorkerSettings, threads: ThreadPoolExecutor
) -> AsyncIterator[EngineCapture]:
    capture = await asyncio.to_thread(EngineCapture, capture_config(settings), threads)
    try:
        yield capture
    finally:
        await capture.close()


@asynccontextmanager
async def _egress(settings: WorkerSettings, capture: EngineCapture) -> AsyncIterator[WorkerEgress]:
    agent = NodeAgent(settings.atelet_socket)
    try:
        yield WorkerEgress(agent, capture, policy_refresh=settings.policy_refresh)
    finally:
        await agent.close()


def _stats(
    settings: WorkerSettings, capture: EngineCapture, stack: AsyncExitStack
) -> dict[str, str]:
    """Where the numbers are shown, if anywhere."""
    if settings.stats_listen is None:
        return {}

    def shown(_: Query) -> Page:
        return Page(capture.metrics(), content_type=CONTENT_TYPE_LATEST)

    pages = PageServer("--stats-listen", settings.stats_listen, {"/metrics": shown})
    return {"stats": str(stack.enter_context(pages).address)}


def _denials(
    settings: WorkerSettings, capture: EngineCapture, stack: AsyncExitStack
) -> dict[str, str]:
    """Where people can ask for the names that were denied, if anywhere."""
    asked = DenialsSettings(
        settings.denials_listen, settings.credential, settings.trust, settings.denials_reader
    )
    address = stack.enter_context(serving_denials(asked, capture.denials))
    return {} if address is None else {"denials": address}


async def _networks(settings: WorkerSettings, threads: ThreadPoolExecutor) -> PairPool:
    own = await asyncio.to_thread(own_addresses)
    capturing = Capturing(
        settings.capture_port, (*(ip for ip in settings.ip if ":" not in ip), *own)
    )
    return PairPool(settings.net_prefix, settings.network_pool, threads, capturing)


def _hosting(
    settings: WorkerSettings,
    networks: PairPool,
    sandboxes: tuple[Sandbox, ...],
    ingress: TunnelIngress,
    egress: WorkerEgress,
    common: Common,
) -> tuple[Supervisor, Registration]:
    supervisor = Supervisor(
        Parts(
            networks=networks,
            sandboxes={sandbox.sandbox_class: sandbox for sandbox in sandboxes},
            ingress=ingress,
            egress=egress,
            make_socket=socket_in_netns,
            stop_wait=settings.stop_wait,
        ),
        slots=settings.slots,
        suspend_grace=settings.suspend_grace,
        allowed_host_paths=settings.allow_host_path,
        common=common,
        changed=lambda: registration.beat_now(),  # noqa: PLW0108 - made below
    )
    registration = Registration(
        settings.atelet_socket,
        _record(settings, sandboxes),
        settings.socket,
        supervisor,
        capacity=settings.capacity,
    )
    return supervisor, registration


def _record(settings: WorkerSettings, sandboxes: tuple[Sandbox, ...]) -> ateapi_pb2.Worker:
    return ateapi_pb2.Worker(
        metadata=ateapi_pb2.ResourceMetadata(name=settings.name),
        worker_namespace=settings.namespace,
        worker_pool=settings.pool,
        worker_pod=settings.name,
        worker_pod_uid=settings.pod_uid or settings.name,
        ips=settings.ip,
        sandbox_class=sandboxes[0].sandbox_class,
        sandbox_classes=[sandbox.sandbox_class for sandbox in sandboxes],
        labels=settings.labels,
        epoch=new_epoch(settings.state_dir),
        spiffe_id=settings.spiffe_id,
    )


@asynccontextmanager
async def _watched(
    loops: Mapping[str, Coroutine[Any, Any, None]], stop: daemon.Stop
) -> AsyncIterator[None]:
    """Runs them beside the body. Should one ever end by itself, the worker stops and says why."""
    tasks = {what: asyncio.ensure_future(loop) for what, loop in loops.items()}
    for task in tasks.values():
        task.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        for task in tasks.values():
            task.cancel()
        outcomes = await asyncio.gather(*tasks.values(), return_exceptions=True)
    for what, outcome in zip(tasks, outcomes, strict=True):
        if not isinstance(outcome, asyncio.CancelledError):
            raise AteError(f"{what} ended: {outcome!r}")


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


async def _last_beat(registration: Registration) -> None:
    """Says that nothing is hosted here any more, so that nobody waits for the silence to tell."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BEAT_SECONDS):
            await registration.beat()
