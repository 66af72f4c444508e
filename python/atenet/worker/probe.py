"""Waits until an actor is ready: its wakeup probes answered, or its port accepts.

Every connection is made from the gateway namespace, the way that requests will come.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from atenet.errors import AteError
from atenet.proto import ateapi_pb2
from atenet.worker.network import ACTOR_ADDRESS
from atenet.worker.sandbox import InvalidTemplateError

__all__ = ["DEFAULT_PORT", "NotReadyError", "Probe", "plan_probes", "wait_ready"]

DEFAULT_PORT = 80
_POLL_SECONDS = 0.003
_TRY_SECONDS = 0.25
# An actor without a probe need not listen on port 80 at all; then running is all we can ask.
_UNPROBED_SECONDS = 2.0
_HEAD_BYTES = 4096

SocketMaker = Callable[[str], int]


class NotReadyError(AteError):
    """A wakeup probe's time ran out."""


@dataclass(frozen=True)
class Probe:
    """`path`: HTTP, ready on exactly 200; None: ready when the port accepts."""

    container: str
    port: int
    path: str | None
    seconds: float
    required: bool = True


def plan_probes(template: ateapi_pb2.ActorTemplate) -> tuple[Probe, ...]:
    """The containers' probes; where there is none at all, port 80. Raises InvalidTemplateError."""
    probes = tuple(
        _plan(container.name, container.wakeup_probe, f"template.containers[{index}].wakeup_probe")
        for index, container in enumerate(template.containers)
        if container.HasField("wakeup_probe")
    )
    return probes or (Probe("", DEFAULT_PORT, None, _UNPROBED_SECONDS, required=False),)


async def wait_ready(probes: Sequence[Probe], gateway: Path, make_socket: SocketMaker) -> None:
    """Returns when all are satisfied. Raises NotReadyError at the first whose time runs out.

    `make_socket`: `socket_in_netns` of the engine.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for probe in probes:
                group.create_task(_wait(probe, gateway, make_socket))
    except* NotReadyError as errors:
        first = errors.exceptions[0]
    else:
        return
    raise first


def _plan(container: str, probe: ateapi_pb2.WakeupProbe, where: str) -> Probe:
    by_http = probe.HasField("http_get")
    if by_http == bool(probe.tcp_port):
        raise InvalidTemplateError(f"{where} needs exactly one of http_get and tcp_port")
    if probe.timeout_seconds <= 0:
        raise InvalidTemplateError(f"{where}.timeout_seconds must be above 0")
    port = probe.http_get.port if by_http else probe.tcp_port
    if not 1 <= port <= 65535:
        field = "http_get.port" if by_http else "tcp_port"
        raise InvalidTemplateError(f"{where}.{field} {port} is not a port (1 to 65535)")
    path = _path(probe.http_get.path, f"{where}.http_get.path") if by_http else None
    return Probe(container, port, path, float(probe.timeout_seconds))


def _path(path: str, where: str) -> str:
    if not path or not all("!" <= character <= "~" for character in path):
        raise InvalidTemplateError(f"{where} {path!r} is not a path of visible ASCII characters")
    return path if path.startswith("/") else f"/{path}"


async def _wait(probe: Probe, gateway: Path, make_socket: SocketMaker) -> None:
    last = "no answer yet"
    try:
        async with asyncio.timeout(probe.seconds):
            while True:
                last = await _try(probe, gateway, make_socket)
                if not last:
                    return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        if probe.required:
            what = f"port {probe.port}" if probe.path is None else f"GET :{probe.port}{probe.path}"
            raise NotReadyError(
                f"container {probe.container!r} was not ready in {probe.seconds:g} s: "
                f"{what}: {last}",
                hint="raise the template's wakeup_probe.timeout_seconds, or look at `ate logs`",
            ) from None


async def _try(probe: Probe, gateway: Path, make_socket: SocketMaker) -> str:
    """What is still missing; empty when satisfied."""
    with socket.socket(fileno=make_socket(os.fspath(gateway))) as connection:
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                return await _ask(connection, probe)
        except TimeoutError:
            return "no answer"
        except OSError as e:
            return os.strerror(e.errno) if e.errno else str(e)


async def _ask(connection: socket.socket, probe: Probe) -> str:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, (ACTOR_ADDRESS, probe.port))
    if probe.path is None:
        return ""
    request = f"GET {probe.path} HTTP/1.1\r\nHost: {ACTOR_ADDRESS}:{probe.port}\r\n"
    request += "User-Agent: ate-wakeup-probe\r\nConnection: close\r\n\r\n"
    await loop.sock_sendall(connection, request.encode())
    head = b""
    while b"\r\n" not in head and len(head) < _HEAD_BYTES:
        piece = await loop.sock_recv(connection, _HEAD_BYTES)
        if not piece:
            return "connection closed"
        head += piece
    words = head.partition(b"\r\n")[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        return "not an HTTP answer"
    return "" if words[1] == b"200" else f"status {words[1].decode('ascii', 'replace')}"
