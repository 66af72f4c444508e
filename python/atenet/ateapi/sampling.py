"""Which calls without a caller's trace begin one. Loaded only where spans are collected."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

__all__ = ["WithoutHeartbeats"]

_HEARTBEAT = "ateapi.WorkerService/RegisterWorker"


class WithoutHeartbeats(Sampler):
    """The share that was asked for, of all calls but the one that comes every two seconds from
    every worker."""

    def __init__(self, share: float) -> None:
        self._others = TraceIdRatioBased(share)

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes | None = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        if name == _HEARTBEAT:
            return SamplingResult(Decision.DROP)
        return self._others.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )

    def get_description(self) -> str:
        return f"WithoutHeartbeats({self._others.get_description()})"
