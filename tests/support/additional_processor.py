"""A further external processor, as somebody else may put behind the gateway's decisions."""

from collections.abc import AsyncIterator
from typing import Any, Self

import grpc.aio
from atenet.router.envoy_api import message_class

_SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
_REQUEST = message_class("envoy.service.ext_proc.v3.ProcessingRequest")
_RESPONSE = message_class("envoy.service.ext_proc.v3.ProcessingResponse")


class AdditionalProcessor:
    """Sets `x-added`, tries to send every request elsewhere, and refuses what carries `x-refuse`."""

    def __init__(self) -> None:
        self.address = ""
        self.seen: list[dict[str, str]] = []
        self._server = grpc.aio.server()
        stream = grpc.stream_stream_rpc_method_handler(
            self._process,
            request_deserializer=_REQUEST.FromString,
            response_serializer=_RESPONSE.SerializeToString,
        )
        handler = grpc.method_handlers_generic_handler(_SERVICE, {"Process": stream})
        self._server.add_generic_rpc_handlers((handler,))

    async def start(self) -> Self:
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        self.address = f"127.0.0.1:{port}"
        return self

    async def close(self) -> None:
        await self._server.stop(None)

    async def _process(self, requests: AsyncIterator[Any], _: Any) -> AsyncIterator[Any]:
        async for request in requests:
            headers = request.request_headers.headers.headers
            seen = {each.key: each.raw_value.decode("latin-1") for each in headers}
            self.seen.append(seen)
            response = _RESPONSE()
            if "x-refuse" in seen:
                response.immediate_response.status.code = 418
            else:
                mutation = response.request_headers.response.header_mutation
                mutation.set_headers.add().header.CopyFrom(_header("x-added", b"by another"))
                mutation.set_headers.add().header.CopyFrom(_header(":authority", b"evil.example"))
            yield response


def _header(key: str, value: bytes) -> Any:
    return message_class("envoy.config.core.v3.HeaderValue")(key=key, raw_value=value)
