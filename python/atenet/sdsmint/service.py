"""Delta SDS for leaves on demand: a name that is asked for is answered once, with a leaf or with its removal."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import AsyncIterator
from typing import Any

import grpc

from atenet.router.envoy_api import ANY, message_class
from atenet.sdsmint.leaf import Minter, RefusedNameError
from atenet.sdsmint.live import Live
from atenet.sdsmint.metrics import MintMetrics
from atenet.sdsmint.pool import CaPool
from atenet.sdsmint.settings import SdsmintSettings

__all__ = ["SecretService"]

_log = logging.getLogger(__name__)
_SERVICE = "envoy.service.secret.v3.SecretDiscoveryService"
_REQUEST = "envoy.service.discovery.v3.DeltaDiscoveryRequest"
_RESPONSE = "envoy.service.discovery.v3.DeltaDiscoveryResponse"
_SECRET = "envoy.extensions.transport_sockets.tls.v3.Secret"  # noqa: S105 - a message's name
_TYPE = f"type.googleapis.com/{_SECRET}"


class SecretService:
    """The answers of one process. Nothing is remembered of a leaf but that its name has one."""

    def __init__(self, settings: SdsmintSettings, pool: CaPool, metrics: MintMetrics) -> None:
        self._settings = settings
        self._pool = pool
        self._metrics = metrics
        self._minter = Minter(settings.leaf_cert_ttl)
        self.live = Live(settings.max_names)
        # No two processes ever give two secrets one version.
        self._process = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def handler(self) -> Any:
        stream = grpc.stream_stream_rpc_method_handler(
            self._serve,
            request_deserializer=message_class(_REQUEST).FromString,
            response_serializer=message_class(_RESPONSE).SerializeToString,
        )
        return grpc.method_handlers_generic_handler(_SERVICE, {"DeltaSecrets": stream})

    def reload(self) -> None:
        """Looks at the authorities; leaves of one that no longer mints are taken back."""
        if self._pool.reload():
            taken = self.live.take_all_back()
            _log.info("another authority mints", extra={"leaves_taken_back": taken})

    async def _serve(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        stream = _Stream(self)
        reading = asyncio.create_task(self._read(stream, requests, context))
        try:
            while (response := await stream.out.get()) is not None:
                yield response
            await reading
        finally:
            reading.cancel()
            self.live.forget(stream)

    async def _read(self, stream: _Stream, requests: AsyncIterator[Any], context: Any) -> None:
        try:
            async for request in requests:
                if request.type_url != _TYPE:
                    await context.abort(
                        grpc.StatusCode.INVALID_ARGUMENT, f"only {_TYPE} is served here"
                    )
                if request.HasField("error_detail"):
                    # The stream goes on: the next name may do better.
                    _log.error(
                        "envoy refused a leaf", extra={"error": request.error_detail.message}
                    )
                self.live.remove(stream, list(request.resource_names_unsubscribe))
                if request.resource_names_subscribe:
                    stream.out.put_nowait(self._answer(stream, request.resource_names_subscribe))
        finally:
            stream.out.put_nowait(None)

    def _answer(self, stream: _Stream, names: Any) -> Any:
        response = self.response()
        minted = []
        for name in names:
            try:
                self._add(response, name)
            except RefusedNameError as error:
                response.removed_resources.append(name)
                self._metrics.refused.inc()
                _log.warning(
                    "no leaf for what is no name", extra={"host": name[:256], "problem": str(error)}
                )
            else:
                minted.append(name)
        # After the answer is whole: what is taken back for these goes out behind it.
        for name in minted:
            self.live.add(stream, name)
        return response

    def _add(self, response: Any, name: str) -> None:
        leaf = self._minter.mint(name, self._pool.signer)
        resource = response.resources.add(
            name=name, version=f"{self._process}-{next(self._numbers)}"
        )
        resource.ttl.FromSeconds(round(self._settings.secret_ttl))
        secret = message_class(_SECRET)(name=name)
        secret.tls_certificate.certificate_chain.inline_bytes = leaf.chain
        secret.tls_certificate.private_key.inline_bytes = self._minter.key_pem
        resource.resource.CopyFrom(
            message_class(ANY)(type_url=_TYPE, value=secret.SerializeToString())
        )
        self._metrics.minted.inc()
        _log.debug(
            "minted",
            extra={"host": name, "serial": f"{leaf.serial:x}", "ends": leaf.ends.isoformat()},
        )

    def response(self) -> Any:
        number = next(self._numbers)
        return message_class(_RESPONSE)(type_url=_TYPE, nonce=f"{self._process}-{number}")


class _Stream:
    """What is still to be said on one of Envoy's streams."""

    def __init__(self, service: SecretService) -> None:
        self._service = service
        self.out: asyncio.Queue[Any] = asyncio.Queue()

    def take_back(self, names: list[str]) -> None:
        response = self._service.response()
        response.removed_resources.extend(names)
        self.out.put_nowait(response)
