"""One request to an actor through the router, on the standard library alone."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from atenet.errors import AteError
from atenet.local.layout import Layout

__all__ = ["ACTOR_HEADER", "SERVER_NAME", "ClientTls", "Exchange", "RouterRequest", "exchange"]

ACTOR_HEADER = "ate-target-actor"
# What the router's certificate says, whatever address it is reached at.
SERVER_NAME = "atenet-router.ate-system.svc"

_BLOCK = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class RouterRequest:
    """What to send. `actor` is `<atespace>/<name>`; `port` None is the actor's port 80."""

    actor: str
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    port: int | None = None

    def all_headers(self) -> list[tuple[str, str]]:
        """Theirs first; ours only where they said nothing. In a CONNECT the outer one names the actor."""
        given = {name.lower() for name, _ in self.headers}
        own = [("Host", self.actor.replace("/", ".", 1)), ("User-Agent", "ate"), ("Accept", "*/*")]
        if self.body is not None:
            own.append(("Content-Type", "application/x-www-form-urlencoded"))
            own.append(("Content-Length", str(len(self.body))))
        if self.port is None:
            own.append((ACTOR_HEADER, self.actor))
        return [pair for pair in own if pair[0].lower() not in given] + list(self.headers)

    def head_lines(self) -> list[str]:
        """The request's head as it is sent, for people."""
        head = [f"{self.method} {self.path} HTTP/1.1"]
        if self.port is not None:
            head = [f"CONNECT actor:{self.port} HTTP/1.1", f"{ACTOR_HEADER}: {self.actor}", *head]
        return head + [f"{name}: {value}" for name, value in self.all_headers()]


class Exchange:
    """An answer whose body is still to be read; close it."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse):
        self._connection = connection
        self._answer = answer
        self.status = answer.status
        self.reason = answer.reason
        self.headers = answer.getheaders()

    def blocks(self) -> Iterator[bytes]:
        """The body as it arrives. Raises AteError when it is cut short."""
        try:
            while block := self._answer.read1(_BLOCK):
                yield block
        except (OSError, http.client.HTTPException) as error:
            raise AteError(f"the answer was cut short: {error}") from error
        if self._answer.length:
            raise AteError(f"the answer was cut short: {self._answer.length} bytes are missing")

    def read(self) -> bytes:
        return b"".join(self.blocks())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class ClientTls:
    """`roots`: the service-DNS bundle that the router is verified by; `credential`: key and chain shown to it."""

    roots: Path
    credential: Path | None = None

    @classmethod
    def of(cls, layout: Layout) -> ClientTls:
        """How a person of this system speaks to its router."""
        return cls(
            roots=layout.home / "trust" / "service-dns.pem",
            credential=layout.home / "identity" / "cli" / "pod.pem",
        )

    def context(self) -> ssl.SSLContext:
        """Raises AteError naming a file that cannot be used."""
        file = self.roots
        try:
            context = ssl.create_default_context(cafile=str(file))
            if self.credential is not None:
                file = self.credential
                context.load_cert_chain(file)
        except OSError as error:
            raise AteError(
                f"cannot use {file}: {error.strerror or error}",
                hint="`ate up` makes what is missing",
            ) from error
        return context


def exchange(
    address: str, request: RouterRequest, tls: ClientTls | None, timeout_seconds: float
) -> Exchange:
    """Sends the request to the router at `address` (`host:port`), returns once the head is here.

    `tls` None: in the clear. Raises AteError.
    """
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout_seconds)
    try:
        connection.sock = _open(host, int(port), request, tls, timeout_seconds)
        connection.putrequest(
            request.method, request.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in request.all_headers():
            connection.putheader(name, value)
        connection.endheaders(request.body)
        return Exchange(connection, connection.getresponse())
    except TimeoutError:
        connection.close()
        raise AteError(
            f"no answer from {request.actor} in {timeout_seconds:g} s", hint="`ate actor get` it"
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        connection.close()
        raise AteError(
            f"router at {address}: {error or type(error).__name__}", hint="`ate status` shows it"
        ) from error


def _open(
    host: str, port: int, request: RouterRequest, tls: ClientTls | None, timeout_seconds: float
) -> socket.socket:
    """A connection to write the request on: TLS unless told otherwise, a CONNECT when there is a port."""
    opened: socket.socket = socket.create_connection((host, port), timeout_seconds)
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            opened = tls.context().wrap_socket(opened, server_hostname=SERVER_NAME)
        if request.port is not None:
            _connect(opened, request)
    except BaseException:
        with suppress(OSError):
            opened.close()
        raise
    return opened


def _connect(opened: socket.socket, request: RouterRequest) -> None:
    head = f"CONNECT actor:{request.port} HTTP/1.1\r\nHost: actor:{request.port}\r\n"
    opened.sendall(f"{head}{ACTOR_HEADER}: {request.actor}\r\n\r\n".encode())
    # Nothing follows the head of a 200 until we have sent more, so reading ahead loses nothing.
    with closing(http.client.HTTPResponse(opened, method="CONNECT")) as answer:
        answer.begin()
        if answer.status == HTTPStatus.OK:
            return
        length = min(int(answer.getheader("content-length") or 0), _BLOCK)
        said = answer.fp.read(length).decode(errors="replace").strip() if length else ""
    raise AteError(
        f"the router refused the CONNECT: {answer.status} {answer.reason}"
        + (f": {said}" if said else ""),
        hint="`ate actor get` shows the actor",
    )
