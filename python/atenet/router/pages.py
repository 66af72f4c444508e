"""Small pages over plain HTTP for operators, on threads of their own."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from atenet.errors import AteError
from atenet.router.address import Address

__all__ = ["Page", "PageServer", "Query"]

# How soon a stop is noticed.
_POLL_SECONDS = 0.05
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Query:
    """What a page may look at."""

    accept: str
    query: str


@dataclass(frozen=True)
class Page:
    """An answer."""

    body: str
    status: str = "200 OK"
    content_type: str = _TEXT


class PageServer:
    """Serves `pages` (path -> function) while the block lasts. Raises AteError when it cannot bind."""

    def __init__(
        self, flag: str, address: Address, pages: Mapping[str, Callable[[Query], Page]]
    ) -> None:
        self._pages = pages
        try:
            self._server = make_server(address.host, address.port, self._answer, _Threads, _Silent)
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
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        page = self._page(environ)
        body = page.body.encode()
        headers = [("Content-Type", page.content_type), ("Content-Length", str(len(body)))]
        start(
            page.status,
            [*headers, ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")],
        )
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _page(self, environ: dict[str, Any]) -> Page:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return Page("method not allowed\n", "405 Method Not Allowed")
        found = self._pages.get(environ.get("PATH_INFO", ""))
        if found is None:
            return Page("not found\n", "404 Not Found")
        return found(Query(environ.get("HTTP_ACCEPT", ""), environ.get("QUERY_STRING", "")))


class _Threads(socketserver.ThreadingMixIn, WSGIServer):
    """A slow reader must not hold up a probe."""

    daemon_threads = True

    def server_bind(self) -> None:
        # Without the look-up of this host's name that the base class makes, and may wait for.
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()


class _Silent(WSGIRequestHandler):
    # A poller that stays silent does not keep its thread.
    timeout = 10

    def log_message(self, *_: Any) -> None:
        """Probes and scrapes are not news."""
