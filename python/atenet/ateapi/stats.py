"""/metrics over plain HTTP on an address for operators."""

from __future__ import annotations

import socketserver
import threading
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from atenet.ateapi.metrics import Metrics
from atenet.errors import AteError

__all__ = ["StatsServer"]

# How soon a stop is noticed.
_POLL_SECONDS = 0.05


class StatsServer:
    """Serves while the block lasts, on threads of its own. Raises AteError when it cannot bind."""

    def __init__(self, listen: str, metrics: Metrics) -> None:
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit():
            raise AteError(f"--stats-listen {listen!r} is not host:port")
        try:
            self._server = make_server(
                host, int(port), make_wsgi_app(metrics.registry), _Threads, _Silent
            )
        except (OSError, OverflowError) as e:
            raise AteError(f"cannot listen on {listen}: {e}", hint="give another address") from e
        self.address = f"{host}:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="stats", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Threads(socketserver.ThreadingMixIn, WSGIServer):
    """A slow reader must not hold up the next scrape."""

    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Scrapes are not news."""
