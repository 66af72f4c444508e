"""Asking a process for what it lately denied."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlencode

from atenet.address import Address
from atenet.denials.denial import Denial, parse_denials, printable
from atenet.denials.server import PATH
from atenet.errors import AteError

__all__ = ["fetch_denials"]

_LIMIT_SECONDS = 10.0
# Far above what a process keeps of one actor; one that was taken over may answer without end.
_MOST_BYTES = 256 * 1024


def fetch_denials(
    address: str,
    server_name: str,
    actor: str,
    context: ssl.SSLContext,
    *,
    seconds: float = _LIMIT_SECONDS,
) -> list[Denial]:
    """Newest first. `context`: with our certificate, and what the process's must chain to; `seconds`: for all
    of it, however slowly it answers. Raises AteError."""
    ends = time.monotonic() + seconds
    try:
        way = _connected(Address.parse(address), server_name, context, seconds)
        with way, _cut(way, ends - time.monotonic()) as late:
            status, body = _answer(way, actor)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if time.monotonic() >= ends:
            raise _too_late(address, seconds) from error
        raise AteError(
            f"{address} cannot be asked for denials: {error or type(error).__name__}",
            hint="`ate status` shows the processes",
        ) from error
    if late.is_set():
        raise _too_late(address, seconds)
    if len(body) > _MOST_BYTES:
        raise AteError(
            f"{address} answered more than {_MOST_BYTES} bytes, which is no list of denials"
        )
    if status != http.client.OK:
        raise AteError(f"{address} answered {status}: {printable(body.decode(errors='replace'))}")
    try:
        return parse_denials(body)
    except ValueError as error:
        raise AteError(f"{address} answered what is no list of denials: {error}") from error


def _connected(
    address: Address, server_name: str, context: ssl.SSLContext, seconds: float
) -> ssl.SSLSocket:
    plain = socket.create_connection((address.host, address.port), seconds)
    try:
        return context.wrap_socket(
            plain, server_hostname=server_name, do_handshake_on_connect=False
        )
    except BaseException:
        plain.close()
        raise


def _answer(way: ssl.SSLSocket, actor: str) -> tuple[int, bytes]:
    way.do_handshake()
    connection = http.client.HTTPConnection(str(way.server_hostname))
    connection.sock = way
    connection.request("GET", f"{PATH}?{urlencode({'actor': actor})}")
    answer = connection.getresponse()
    try:
        return answer.status, answer.read(_MOST_BYTES + 1)
    finally:
        answer.close()


@contextmanager
def _cut(way: ssl.SSLSocket, seconds: float) -> Iterator[threading.Event]:
    """Ends the connection after so long: a time limit of the socket's own begins anew with each byte."""
    late = threading.Event()

    def cut() -> None:
        late.set()
        with suppress(OSError):
            # Not the TLS one's, which would read on without TLS.
            socket.socket.shutdown(way, socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, seconds), cut)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
        timer.join()


def _too_late(address: str, seconds: float) -> AteError:
    return AteError(
        f"{address} cannot be asked for denials: no whole answer in {seconds:g} s",
        hint="`ate status` shows the processes",
    )
