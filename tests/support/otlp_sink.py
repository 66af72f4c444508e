"""Collectors of spans: OTLP over HTTP and over gRPC, as real ones would receive it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc
import grpc.aio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.addresses import bound_socket
from tests.support.http1_message import read_head, read_request_body

_TRACE_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


@dataclass
class Span:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    attributes: dict[str, object]
    # Trace and span ids.
    links: list[tuple[str, str]] = field(default_factory=list)


class OtlpSink:
    """`POST /v1/traces`, protobuf bodies."""

    def __init__(self) -> None:
        self.address = ""
        self.spans: list[Span] = []
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Condition()

    @classmethod
    async def start(cls) -> "OtlpSink":
        sink = cls()
        listener = bound_socket(0)
        host, port = listener.getsockname()
        sink.address = f"{host}:{port}"
        sink._server = await asyncio.start_server(sink._serve, sock=listener)
        return sink

    async def wait_for(
        self, trace_id: str, is_it: Callable[[Span], object], limit: float = 30.0
    ) -> Span:
        """The first span of a trace that is the one, once it has come."""

        def found() -> Span | None:
            return next(filter(is_it, self.of(trace_id)), None)

        async with asyncio.timeout(limit), self._changed:
            span = await self._changed.wait_for(found)
        assert isinstance(span, Span)
        return span

    async def lineage(self, span: Span, ancestor: str) -> list[Span]:
        """A span and all above it, up to the child of a span that somebody else made."""
        line = [span]
        while line[-1].parent_id != ancestor:
            parent = line[-1].parent_id
            assert parent, "a span of the trace has no parent"
            line.append(await self.wait_for(span.trace_id, lambda it, of=parent: it.span_id == of))  # type: ignore[misc]
        return line

    def of(self, trace_id: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id == trace_id]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await read_head(reader)) is not None:
                body = await read_request_body(head, reader)
                await self._take(ExportTraceServiceRequest.FromString(body.data))
                answer = ExportTraceServiceResponse().SerializeToString()
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n"
                    b"content-length: %d\r\n\r\n%s" % (len(answer), answer)
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _take(self, export: ExportTraceServiceRequest) -> None:
        for resource in export.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_span(span) for span in scope.spans]
        async with self._changed:
            self._changed.notify_all()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


class OtlpGrpcSink(OtlpSink):
    """`TraceService/Export` over plaintext gRPC."""

    @classmethod
    async def start(cls) -> "OtlpGrpcSink":
        sink = cls()
        sink._grpc = grpc.aio.server()
        export = grpc.unary_unary_rpc_method_handler(
            sink._export,
            request_deserializer=ExportTraceServiceRequest.FromString,
            response_serializer=ExportTraceServiceResponse.SerializeToString,
        )
        handlers = grpc.method_handlers_generic_handler(_TRACE_SERVICE, {"Export": export})
        sink._grpc.add_generic_rpc_handlers([handlers])
        sink.address = f"127.0.0.1:{sink._grpc.add_insecure_port('127.0.0.1:0')}"
        await sink._grpc.start()
        return sink

    async def _export(
        self, request: ExportTraceServiceRequest, _context: grpc.aio.ServicerContext
    ) -> ExportTraceServiceResponse:
        await self._take(request)
        return ExportTraceServiceResponse()

    async def close(self) -> None:
        await self._grpc.stop(None)


def _span(span) -> Span:  # type: ignore[no-untyped-def]
    return Span(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        attributes={
            a.key: getattr(a.value, a.value.WhichOneof("value") or "string_value")
            for a in span.attributes
        },
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
    )
