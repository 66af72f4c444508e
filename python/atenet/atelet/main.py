"""`atelet`: puts the node agent together and serves until told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import click

from atenet import daemon, flags
from atenet.atelet.files import ActorFiles
from atenet.atelet.golden import GoldenImages
from atenet.atelet.local import LocalSnapshots
from atenet.atelet.node import NodeAgent
from atenet.atelet.old_images import collect_images
from atenet.atelet.parts import Parts
from atenet.atelet.service import AteletService
from atenet.atelet.settings import AteletSettings
from atenet.atelet.snapshot import SnapshotStore
from atenet.atelet.support import WorkerSupport
from atenet.atelet.workers import Workers
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.identity.credential import Credential
from atenet.proto import ateapi_pb2_grpc, atelet_pb2_grpc
from atenet.rpc import MtlsServer, mtls_channel, mtls_server
from atenet.rpc.unix import serve_unix
from atenet.snapshots import open_objects

__all__ = ["main", "serve"]

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 5.0
_HOUSEKEEPING_SECONDS = 3600.0


@click.command(context_settings={"max_content_width": 100})
@flags.options_for(AteletSettings)
def main(settings: AteletSettings) -> None:
    """Starts, stores and ends actors on this node's workers for the control plane. Needs root."""
    daemon.run("atelet", settings.log_level, lambda stop: serve(settings, stop))


async def serve(settings: AteletSettings, stop: daemon.Stop) -> None:
    """Runs the agent until `stop` is set. Raises AteError when it cannot start."""
    if os.geteuid() != 0:
        raise AteError("a node agent needs root", hint="start it with sudo, or as a privileged pod")
    async with AsyncExitStack() as stack:
        stack.enter_context(daemon.only_one(settings.state_dir, "--state-dir"))
        parts = await asyncio.to_thread(_open, settings)
        workers = parts.workers
        stack.push_async_callback(workers.close)
        node = NodeAgent(parts)
        stack.push_async_callback(node.close)
        _check_node(settings)
        control = mtls_channel(
            settings.api,
            credential=settings.credential,
            roots=settings.api_roots,
            server_name=settings.api_server_name,
        )
        stack.push_async_callback(control.close)
        bound = await stack.enter_async_context(_served(settings, node))
        support = WorkerSupport(
            workers,
            ateapi_pb2_grpc.WorkerServiceStub(control),
            node=settings.node,
            endpoint=settings.advertise or bound,
            held=parts.local.all,
        )
        await stack.enter_async_context(
            serve_unix(
                settings.socket,
                lambda server: atelet_pb2_grpc.add_WorkerSupportServicer_to_server(support, server),
            )
        )
        daemon.announce_ready(settings.ready_file, {"grpc": bound})
        images = partial(collect_images, settings.images, parts)
        old = (parts.files.forget_old_logs, parts.golden.forget_unused, images)
        await _housekeeping(old, stop)


def _check_node(settings: AteletSettings) -> None:
    """The control plane believes the certificate, not the flag: where they differ, no call of this
    agent would be let in."""
    leaf = Credential.load(settings.credential).want()
    name = spiffe.node_dns_name(leaf.uri or spiffe.ATELET_ID, settings.node)
    if name not in leaf.dns:
        raise AteError(
            f"--credential {settings.credential} is not of --node {settings.node}",
            hint=f"an agent's certificate must have the DNS name {name}",
        )


def _open(settings: AteletSettings) -> Parts:
    """Raises AteError naming the directory that cannot be used."""
    snapshots = SnapshotStore(open_objects(settings.snapshots))
    files = ActorFiles(settings.state_dir / "actors")
    workers = Workers(settings.state_dir / "workers.json", silent_after=settings.worker_timeout)
    golden = GoldenImages(settings.state_dir / "golden", limit=settings.golden_bytes)
    local = LocalSnapshots(files, limit=settings.paused_bytes)
    return Parts(files, snapshots, local, golden, workers, gateway=settings.egress_gateway_address)


@asynccontextmanager
async def _served(settings: AteletSettings, node: NodeAgent) -> AsyncIterator[str]:
    """Serves the control plane; gives the bound address."""
    serving: MtlsServer = mtls_server(
        settings.listen, credential=settings.credential, client_roots=settings.trust
    )
    atelet_pb2_grpc.add_AteletServicer_to_server(AteletService(node), serving.server)
    await serving.server.start()
    try:
        yield serving.address
    finally:
        await serving.server.stop(_GRACE_SECONDS)


async def _housekeeping(tidies: Sequence[Callable[[], None]], stop: daemon.Stop) -> None:
    """Returns when `stop` is set."""
    while not stop.is_set():
        for tidy in tidies:
            try:
                await asyncio.to_thread(tidy)
            except Exception:  # noqa: BLE001 - logged whole, and tried again
                # What is left over does no harm; an agent that ends does.
                _log.exception("old files could not be removed: tried again later")
        try:
            async with asyncio.timeout(_HOUSEKEEPING_SECONDS):
                await stop.wait()
        except TimeoutError:
            continue
