"""The minter as a process: its socket, its watch on the authorities, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import grpc.aio

from atenet.daemon import Stop, announce_ready
from atenet.errors import AteError
from atenet.pages import Page, PageServer
from atenet.sdsmint.metrics import MintMetrics
from atenet.sdsmint.pool import CaPool
from atenet.sdsmint.service import SecretService
from atenet.sdsmint.settings import SdsmintSettings

__all__ = ["serve"]

_LOOK_SECONDS = 1.0
# Streams never end by themselves.
_GRACE_SECONDS = 0.5
# sun_path holds 108 bytes with its final NUL.
_LONGEST_SOCKET = 107


async def serve(settings: SdsmintSettings, stop: Stop) -> None:
    """Serves until `stop`. Raises AteError that names the flag."""
    try:
        pool = CaPool(settings.ca_pool_path)
    except AteError as error:
        raise AteError(f"--ca-pool-path: {error.message}", hint=error.hint) from error
    metrics = MintMetrics()
    service = SecretService(settings, pool, metrics)
    metrics.follow(service.live)
    # Each name that Envoy holds is a stream of its own.
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", 1 << 20)])
    server.add_generic_rpc_handlers((service.handler(),))
    with _socket(settings, server), _pages(settings, metrics):
        await server.start()
        watching = asyncio.create_task(_watch(service))
        try:
            announce_ready(settings.ready_file, {"socket": str(settings.uds_path)})
            await stop.wait()
        finally:
            watching.cancel()
            await server.stop(_GRACE_SECONDS)


async def _watch(service: SecretService) -> None:
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        service.reload()


@contextlib.contextmanager
def _socket(settings: SdsmintSettings, server: grpc.aio.Server) -> Iterator[None]:
    """Binds; whoever may not ask cannot connect at any moment. Removes the socket at the end."""
    path = settings.uds_path
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        raise AteError(f"--uds-path: {path} is too long for a Unix socket")
    _clear(path)
    before = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix:{path}")
        if settings.uds_gid is not None:
            os.chown(path, -1, settings.uds_gid)
            path.chmod(0o660)
    except (RuntimeError, OSError) as error:
        raise AteError(f"--uds-path: cannot serve on {path}: {error}") from error
    finally:
        os.umask(before)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """What an earlier run left behind; anything but a socket is somebody's."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise AteError(f"--uds-path: {path} is there already, and is no socket")
        path.unlink()
    except FileNotFoundError:
        return


def _pages(
    settings: SdsmintSettings, metrics: MintMetrics
) -> contextlib.AbstractContextManager[object]:
    if settings.metrics_listen_addr is None:
        return contextlib.nullcontext()
    pages = {"/metrics": lambda _: Page(metrics.text()), "/readyz": lambda _: Page("ready\n")}
    return PageServer("--metrics-listen-addr", settings.metrics_listen_addr, pages)
