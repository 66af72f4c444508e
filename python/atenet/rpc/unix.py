"""A grpc.aio server on a Unix socket that only its owner may open."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from atenet.errors import AteError

__all__ = ["serve_unix"]

_GRACE_SECONDS = 2.0


@asynccontextmanager
async def serve_unix(
    socket: Path, add_handlers: Callable[[grpc.aio.Server], None]
) -> AsyncIterator[None]:
    """Serves while the body runs. A socket file that an interrupted run left is replaced."""
    server = grpc.aio.server()
    add_handlers(server)
    _bind(server, socket)
    await server.start()
    try:
        yield
    finally:
        await server.stop(_GRACE_SECONDS)
        _remove(socket)


def _bind(server: grpc.aio.Server, socket: Path) -> None:
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove(socket)
    # The socket must never be open to others, not even before a chmod.
    before = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as e:
        raise AteError(
            f"cannot listen on Unix socket {socket}: {e}",
            hint="the path may be at most 107 bytes long",
        ) from e
    finally:
        os.umask(before)


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)
