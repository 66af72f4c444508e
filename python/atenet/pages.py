"""Small pages over plain HTTP for operators, on threads of their own."""

from __future__ import annotations

import logging
import socketserver
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from atenet.address import Address
from atenet.errors import AteError

__all__ = ["Page", "PageServer", "Query"]

_log = logging.getLogger(__name__)
# How soon a stop is noticed.
_POLL_SECONDS = 0.05
# What has connected when the server stops is answered, unless it takes longer than this.
_LAST_SECONDS = 1.0
# Answered at a time: more are closed, so that nobody can use up this process's threads.
_MOST_CONNECTIONS = 512
_TEXT = "text/plain; charset=utf-8"
_PEER = "atenet.peer"


@dataclass(frozen=True)
class Query:
    """What a page may look at."""

    accept: str
    query: str
    # The one URI name of the client's certificate, where it was asked for one.
    peer: str | None = None


@dataclass(frozen=True)
class Page:
    """An answer."""

    body: str
    status: str = "200 OK"
    content_type: str = _TEXT
    cache: str = "no-store"


class PageServer:
    """Serves `pages` (path -> function) while the block lasts. Raises AteError when it cannot bind.

    `tls`: asked for each connection's context; None is plain HTTP.
    """

    def __init__(
        self,
        flag: str,
        address: Address,
        pages: Mapping[str, Callable[[Query], Page]],
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._pages = pages
        try:
            self._server = make_server(address.host, address.port, self._answer, _Threads, _Silent)
            self._server.tls = tls
        except OSError as error:
            raise AteError(
                f"{flag}: cannot listen on {address}: {error.strerror}", hint="give another address"
            ) from error
        self.address = Address(address.host, self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="pages", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.finish(_LAST_SECONDS)
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        page = self._page(environ)
        body = page.body.encode()
        headers = [("Content-Type", page.content_type), ("Content-Length", str(len(body)))]
        start(
            page.status,
            [*headers, ("Cache-Control", page.cache), ("X-Content-Type-Options", "nosniff")],
        )
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _page(self, environ: dict[str, Any]) -> Page:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return Page("method not allowed\n", "405 Method Not Allowed")
        found = self._pages.get(environ.get("PATH_INFO", ""))
        if found is None:
            return Page("not found\n", "404 Not Found")
        accept, query = environ.get("HTTP_ACCEPT", ""), environ.get("QUERY_STRING", "")
        return found(Query(accept, query, environ.get(_PEER)))


class _Threads(socketserver.ThreadingMixIn, WSGIServer):
    """A slow reader must not hold up a probe."""

    daemon_threads = True
    tls: Callable[[], ssl.SSLContext] | None = None

    def finish(self, seconds: float) -> None:
        """Answers who is connected already, also where nobody has accepted it yet.

        Closing the socket alone resets the connections that wait in its queue, and the end of the
        process those that are being answered.
        """
        self.socket.setblocking(False)
        while True:
            try:
                request, client = self.get_request()
            except OSError:
                break
            self.process_request(request, client)
        with self._idle:
            self._idle.wait_for(lambda: not self._answering, seconds)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            with self._idle:
                self._answering += 1
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            self._process(request, client_address)
        finally:
            self._room.release()
            with self._idle:
                self._answering -= 1
                self._idle.notify_all()

    def _process(self, request: Any, client_address: Any) -> None:
        # The handshake is the client's to hold up: on its own thread, and not for long.
        try:
            if self.tls is not None:
                request.settimeout(_Silent.timeout)
                request = self.tls().wrap_socket(request, server_side=True)
        except OSError as error:
            _log.debug("no handshake", extra={"error": str(error)})
            self.shutdown_request(request)
            return
        super().process_request_thread(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is not news; anything else is."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            _log.error("a page failed", exc_info=error)

    def server_bind(self) -> None:
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._idle = threading.Condition()
        self._answering = 0
        # Without the look-up of this host's name that the base class makes, and may wait for.
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()


class _Silent(WSGIRequestHandler):
    # A poller that stays silent does not keep its thread.
    timeout = 10

    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), _PEER: _uri_name(self.request)}

    def log_message(self, *_: Any) -> None:
        """Probes and scrapes are not news."""


def _uri_name(connection: Any) -> str | None:
    """Compared as it is spelled; a certificate with none or several names nobody."""
    if not isinstance(connection, ssl.SSLSocket):
        return None
    shown: Any = connection.getpeercert() or {}
    names = [value for kind, value in shown.get("subjectAltName", ()) if kind == "URI"]
    return str(names[0]) if len(names) == 1 else None
