"""Spans over OTLP: one for each call, one for each stored step, one for each call to a node.

They carry names of actors and codes, never a message's content. Without a collector nothing is
made, and the caller's trace is only read for the audit log.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import NoOpTracer, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

__all__ = ["Tracing", "tag", "trace_id", "tracing_to"]

_PROPAGATOR = TraceContextTextMapPropagator()
_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_NAME = "atenet.ateapi"


class Tracing:
    """`tracer` makes spans; `on` is False where nobody collects them."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        self.on = provider is not None
        self.tracer: Tracer = provider.get_tracer(_NAME) if self.on else NoOpTracer()

    @contextmanager
    def call(self, path: str, request: Any, metadata: Mapping[str, str]) -> Iterator[Span]:
        """A call that is being answered, within its caller's trace."""
        service, _, method = path.removeprefix("/").partition("/")
        with self.tracer.start_as_current_span(
            f"{service}/{method}",
            context=_PROPAGATOR.extract(metadata),
            kind=SpanKind.SERVER,
            attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
            record_exception=False,
        ) as span:
            _tag_request(span, request)
            yield span

    @contextmanager
    def step(self, name: str) -> Iterator[Span]:
        """A step of a workflow."""
        with self.tracer.start_as_current_span(name, record_exception=False) as span:
            yield span

    @contextmanager
    def asking(self, path: str, handle: Any) -> Iterator[tuple[Span, list[tuple[str, str]]]]:
        """A call to a node's agent about the actor of `handle`; and its metadata, by which the
        callee may join the trace."""
        service, _, method = path.partition("/")
        with self.tracer.start_as_current_span(
            path,
            kind=SpanKind.CLIENT,
            attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
            record_exception=False,
        ) as span:
            tag(span, handle.actor.atespace, handle.actor.name)
            carrier: dict[str, str] = {}
            _PROPAGATOR.inject(carrier)
            yield span, list(carrier.items())

    async def close(self) -> None:
        """Sends what is left, for a few seconds at most."""
        if self._provider is not None:
            await asyncio.to_thread(self._provider.shutdown)


def tracing_to(collector: str | None, sampling: float) -> Tracing:
    """To the OTLP collector at `collector` (`host:port`, over HTTP); None: nowhere.

    `sampling`: the share of calls without a caller's trace that begin one.
    """
    if collector is None:
        return Tracing()
    # The SDK takes a while to load, and few use it.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased

    from atenet.ateapi.sampling import WithoutHeartbeats

    provider = TracerProvider(
        sampler=ParentBased(WithoutHeartbeats(sampling)),
        resource=Resource({"service.name": "ateapi"}),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=f"http://{collector}/v1/traces", timeout=3)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
    return Tracing(provider)


def tag(span: Span, atespace: str, actor: str) -> None:
    span.set_attribute("ate.atespace", atespace[:64])
    if actor:
        span.set_attribute("ate.actor", actor[:64])


def ended(span: Span, code: str) -> None:
    """The call's gRPC code; anything but OK is an error."""
    span.set_attribute("rpc.grpc.status_code", code)
    if code != "OK":
        span.set_status(Status(StatusCode.ERROR, code))


def trace_id(metadata: Mapping[str, str]) -> str:
    """Of the caller's trace; empty without one."""
    match = _PARENT.fullmatch(metadata.get("traceparent", ""))
    return match[1] if match else ""


def in_span() -> bool:
    return trace.get_current_span().is_recording()


def current_trace_id() -> str:
    """Of the span that is being made; empty without one."""
    context = trace.get_current_span().get_span_context()
    return format(context.trace_id, "032x") if context.is_valid else ""


def _tag_request(span: Span, request: Any) -> None:
    ref = getattr(request, "actor", None)
    if ref is not None:
        ref = getattr(ref, "metadata", ref)
        tag(span, ref.atespace, ref.name)
