"""/metrics over plain HTTP on an address for operators."""

from __future__ import annotations

from typing import Self

from prometheus_client import start_http_server

from atenet.ateapi.metrics import Metrics
from atenet.errors import AteError

__all__ = ["StatsServer"]


class StatsServer:
    """Serves while the block lasts, on threads of its own. Raises AteError when it cannot bind."""

    def __init__(self, listen: str, metrics: Metrics) -> None:
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit():
            raise AteError(f"--stats-listen {listen!r} is not host:port")
        try:
            self._server, self._thread = start_http_server(int(port), host, metrics.registry)
        except OSError as e:
            raise AteError(
                f"cannot listen on {listen}: {e.strerror}", hint="give another --stats-listen"
            ) from e
        self.address = f"{host}:{self._server.server_port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
