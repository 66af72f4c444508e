"""A server behind the engine's front: on a Unix socket that only this account can open."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from atenet.errors import AteError
from atenet.rpc.keepalive import SERVER_OPTIONS

__all__ = ["fronted_auth_context", "fronted_server"]

# The front sets these itself and lets no caller's through.
_CERTIFIED = "x-atenet-certified"
_URI = "x-atenet-peer-uri"
_DNS = "x-atenet-peer-dns"
_numbers = itertools.count()  # several control planes in one process, as tests have them


def fronted_auth_context(
    context: grpc.aio.ServicerContext[Any, Any],
) -> Mapping[str, Iterable[bytes]]:
    """What the front says of the caller, as gRPC's own authentication context would:
    `x509_pem_cert` (present for a verified certificate), `peer_uri`, `peer_dns`.

    For calls of a `fronted_server`: only the front can open its socket. Where the server also
    listens elsewhere, what callers there say of themselves counts for nothing.
    """
    if not context.peer().startswith("unix:"):
        return context.auth_context()
    metadata = context.invocation_metadata() or ()

    def named(key: str) -> list[bytes]:
        return [str(value).encode() for name, value in metadata if name == key]

    if not named(_CERTIFIED):
        return {}
    return {"x509_pem_cert": (b"",), "peer_uri": named(_URI), "peer_dns": named(_DNS)}


@contextlib.contextmanager
def fronted_server(
    directory: Path, options: Sequence[tuple[str, Any]] = ()
) -> Iterator[tuple[grpc.aio.Server, Path]]:
    """A server that takes handlers until it is started, and its socket in `directory`."""
    with _short(directory) as short:
        _sweep(short)
        path = directory / f"front.{os.getpid()}.{next(_numbers)}.sock"
        server = grpc.aio.server(options=[*SERVER_OPTIONS, *options])
        _bind(server, short / path.name)
        try:
            yield server, path
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _short(directory: Path) -> Iterator[Path]:
    """The directory by its descriptor: a socket's path may have 107 bytes only."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _bind(server: grpc.aio.Server, path: Path) -> None:
    # It must never be open to others, not even before a chmod.
    before = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as e:
        raise AteError(f"cannot listen on a Unix socket beside the store: {e}") from e
    finally:
        os.umask(before)


def _sweep(directory: Path) -> None:
    """Removes sockets of processes that were killed: nobody listens there any more."""
    for path in directory.glob("front.*.sock"):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue
