"""A gRPC actor in all four shapes, without generated code: messages are plain bytes."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from tests.support.addresses import candidates
from tests.support.origins import ACTOR_PORT

SERVICE = "conformance.Echo"


def method(name: str) -> str:
    return f"/{SERVICE}/{name}"


class GrpcOrigin:
    """An insecure HTTP/2 server on port 80 of a loopback address of its own."""

    def __init__(self) -> None:
        self.address = ""
        self.calls = 0
        self.metadata: list[dict[str, str]] = []
        # Set when the stream of a held call was reset; a clean end of its messages does not set it.
        self.cancelled = asyncio.Event()
        self._server: grpc.aio.Server | None = None

    @classmethod
    async def start(cls) -> "GrpcOrigin":
        origin = cls()
        for address in candidates():
            server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
            server.add_generic_rpc_handlers([origin._handlers()])
            try:
                server.add_insecure_port(f"{address}:{ACTOR_PORT}")
            except RuntimeError:
                continue
            await server.start()
            origin._server, origin.address = server, address
            return origin
        raise RuntimeError("no free loopback address for a gRPC actor")

    @classmethod
    async def start_tls(cls, bundle: bytes) -> tuple["GrpcOrigin", int]:
        """The same over TLS on any port of 127.0.0.1, and the port. `bundle`: key and chain in one PEM."""
        origin = cls()
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers([origin._handlers()])
        credentials = grpc.ssl_server_credentials([(bundle, bundle)])
        port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        origin._server, origin.address = server, "127.0.0.1"
        return origin, port

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(None)

    def _handlers(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Unary": grpc.unary_unary_rpc_method_handler(self._unary),
                "Down": grpc.unary_stream_rpc_method_handler(self._down),
                "Up": grpc.stream_unary_rpc_method_handler(self._up),
                "Both": grpc.stream_stream_rpc_method_handler(self._both),
                "Held": grpc.stream_stream_rpc_method_handler(self._held),
                "Fail": grpc.unary_unary_rpc_method_handler(self._fail),
            },
        )

    def _note(self, context: grpc.aio.ServicerContext) -> None:
        self.calls += 1
        self.metadata.append(
            {
                key: value
                for key, value in context.invocation_metadata() or ()
                if isinstance(value, str)
            }
        )
        context.set_trailing_metadata((("x-echo-trailer", "kept"),))

    async def _unary(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        self._note(context)
        return b"echo:" + request

    async def _down(
        self, request: bytes, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[bytes]:
        self._note(context)
        for number in range(int(request)):
            yield str(number).encode()

    async def _up(self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> bytes:
        self._note(context)
        return b"".join([message async for message in requests])

    async def _both(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[bytes]:
        self._note(context)
        async for message in requests:
            yield b"echo:" + message

    async def _held(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[bytes]:
        """Echoes one message and then neither reads nor answers."""
        self._note(context)
        yield b"echo:" + await anext(requests)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def _fail(self, _request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        self._note(context)
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the actor's own refusal")
        return b""
