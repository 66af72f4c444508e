"""The xDS server: hands one snapshot to Envoy over ADS and notes what Envoy says to it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from atenet.errors import AteError
from atenet.router.envoy_api import DISCOVERY_REQUEST, DISCOVERY_RESPONSE, message_class
from atenet.router.resources import Snapshot

__all__ = ["XdsServer"]

_SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
_log = logging.getLogger(__name__)


class XdsServer:
    """Serves one snapshot. A version never repeats, across restarts either: Envoy may outlive this process."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.version = f"{time.time_ns()}-{secrets.token_hex(4)}"
        self._nonces = itertools.count(1)
        self._accepted: set[str] = set()
        self._verdict: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((self._handler(),))

    def _handler(self) -> Any:
        stream = grpc.stream_stream_rpc_method_handler(
            self._serve,
            request_deserializer=message_class(DISCOVERY_REQUEST).FromString,
            response_serializer=message_class(DISCOVERY_RESPONSE).SerializeToString,
        )
        return grpc.method_handlers_generic_handler(_SERVICE, {"StreamAggregatedResources": stream})

    async def start(self, port: int) -> int:
        """Binds on loopback and serves; returns the port. Raises AteError."""
        try:
            bound = self._server.add_insecure_port(f"127.0.0.1:{port}")
        except RuntimeError as error:
            raise AteError(
                f"--port-xds: cannot listen on 127.0.0.1:{port}",
                hint="another process has the port",
            ) from error
        await self._server.start()
        return bound

    async def accepted(self) -> None:
        """Returns once Envoy has taken every kind of resource. Raises AteError with Envoy's words if it refuses one."""
        await asyncio.shield(self._verdict)

    @property
    def is_accepted(self) -> bool:
        return (
            self._verdict.done()
            and not self._verdict.cancelled()
            and self._verdict.exception() is None
        )

    async def close(self) -> None:
        """Ends at once: an ADS stream never ends by itself, and Envoy keeps what it has."""
        if not self._verdict.done():
            self._verdict.cancel()
        elif not self._verdict.cancelled():
            self._verdict.exception()
        await self._server.stop(None)

    async def _serve(self, requests: AsyncIterator[Any], _context: Any) -> AsyncIterator[Any]:
        """State of the world: each new subscription is answered once; what follows is an ACK or a NACK."""
        subscriptions: dict[str, frozenset[str]] = {}
        async for request in requests:
            if request.HasField("error_detail"):
                self._refused(request.type_url, request.error_detail.message)
                continue
            wanted = frozenset(request.resource_names)
            if request.response_nonce and subscriptions.get(request.type_url) == wanted:
                self._took(request.type_url, wanted)
                continue
            subscriptions[request.type_url] = wanted
            yield self._response(request.type_url, wanted)

    def _response(self, type_url: str, wanted: frozenset[str]) -> Any:
        known = self._snapshot.resources.get(type_url, {})
        response = message_class(DISCOVERY_RESPONSE)(
            version_info=self.version,
            type_url=type_url,
            nonce=f"{self.version}-{next(self._nonces)}",
        )
        for name, resource in known.items():
            if not wanted or name in wanted:
                response.resources.add().CopyFrom(resource)
        return response

    def _took(self, type_url: str, wanted: frozenset[str]) -> None:
        # Secrets are asked for by name, more of them each time: only the last such ACK speaks of all.
        if wanted and not wanted >= self._snapshot.resources.get(type_url, {}).keys():
            return
        self._accepted.add(type_url)
        if self._accepted >= self._snapshot.resources.keys() and not self._verdict.done():
            self._verdict.set_result(None)

    def _refused(self, type_url: str, words: str) -> None:
        kind = type_url.rpartition(".")[2]
        _log.error("envoy refused its configuration", extra={"kind": kind, "error": words})
        if not self._verdict.done():
            hint = (
                "check the files and addresses that the message names, and that this is Envoy 1.40"
            )
            self._verdict.set_exception(
                AteError(f"Envoy refused its {kind} resources: {words}", hint=hint)
            )
