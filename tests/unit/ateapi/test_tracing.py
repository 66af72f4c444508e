"""Spans, as a real collector receives them: the call, its steps, its node call, in one trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from atenet.address import Address
from atenet.ateapi.observed import step_name
from atenet.ateapi.tracing import trace_id
from atenet.ateapi.workflows import changes
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref, resume
from tests.support.eventually import eventually
from tests.support.otlp_sink import OtlpSink, Span

_TRACE = "0af7651916cd43dd8448eb211c80319c"
_PARENT = "b7ad6b7169203331"


def _caller(trace: str = _TRACE, sampled: str = "01") -> list[tuple[str, str]]:
    return [("traceparent", f"00-{trace}-{_PARENT}-{sampled}")]


@pytest.fixture
async def sink() -> AsyncIterator[OtlpSink]:
    made = await OtlpSink.start()
    yield made
    await made.close()


@pytest.fixture
async def plane(tmp_path: Path, sink: OtlpSink) -> AsyncIterator[ControlPlane]:
    async with (
        control_plane(tmp_path) as made,
        made.in_process(otlp_collector_address=Address.parse(sink.address), trace_sampling=0.0),
    ):
        await made.seed("a")
        await made.register()
        yield made


async def test_a_cold_resume_is_one_trace_from_the_caller_to_the_node(
    plane: ControlPlane, sink: OtlpSink
) -> None:
    await plane.control().ResumeActor(resume("a"), metadata=_caller())
    # A span is sent when it ends, and the call's own is the last to end.
    call = await sink.wait_for(_TRACE, lambda span: span.name == "ateapi.Control/ResumeActor")
    spans = {span.name: span for span in sink.of(_TRACE)}
    assert call.parent_id == _PARENT
    assert call.attributes["rpc.grpc.status_code"] == "OK"
    steps = {"store claim", "atelet.Atelet/Run", "store running"}
    assert set(spans) == steps | {"ateapi.Control/ResumeActor"}
    for name in steps:
        assert spans[name].parent_id == call.span_id, name
    for span in spans.values():
        assert _actor(span) == ("team-a", "a"), span.name


def _actor(span: Span) -> tuple[object, object]:
    return span.attributes["ate.atespace"], span.attributes["ate.actor"]


async def test_a_refused_call_says_so_by_its_code(plane: ControlPlane, sink: OtlpSink) -> None:
    call = plane.control().GetActor(pb.GetActorRequest(actor=ref("nobody")), metadata=_caller())
    await code_of(call)
    span = await sink.wait_for(_TRACE, lambda _: True)
    assert span.attributes["rpc.grpc.status_code"] == "NOT_FOUND"


async def test_a_caller_that_is_not_sampled_is_not_traced(
    plane: ControlPlane, sink: OtlpSink
) -> None:
    other = "1" * 32
    get = pb.GetActorRequest(actor=ref("a"))
    await plane.control().GetActor(get, metadata=_caller(other, sampled="00"))
    await plane.control().GetActor(get, metadata=_caller())
    await sink.wait_for(_TRACE, lambda _: True)
    assert not sink.of(other)
    assert {span.trace_id for span in sink.spans} == {_TRACE}


async def test_heartbeats_begin_no_traces_and_what_is_done_unasked_does(
    tmp_path: Path, sink: OtlpSink
) -> None:
    collector = Address.parse(sink.address)
    async with (
        control_plane(tmp_path, worker_timeout=0.3) as plane,
        plane.in_process(otlp_collector_address=collector, trace_sampling=1.0),
    ):
        await plane.seed("a")
        await plane.register()
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        await plane.until("a", "SUSPENDED")  # its worker is silent

        def recovered() -> bool:
            return any(span.name == "store suspended" for span in sink.spans)

        await eventually(recovered)
    names = {span.name for span in sink.spans}
    assert "ateapi.Control/ResumeActor" in names
    assert "ateapi.WorkerService/RegisterWorker" not in names
    roots = {span.name for span in sink.spans if not span.parent_id and span.name[:5] == "store"}
    assert roots == {"store begin_suspend", "store suspended"}


async def test_behind_the_front_a_warm_call_has_its_span_too(
    tmp_path: Path, sink: OtlpSink
) -> None:
    collector = Address.parse(sink.address)
    async with (
        control_plane(tmp_path) as plane,
        plane.in_process(otlp_collector_address=collector, front="auto"),
    ):
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        assert not (await plane.control().ResumeActor(resume("a"), metadata=_caller())).resumed
        span = await sink.wait_for(_TRACE, lambda _: True)
        assert (span.name, span.parent_id) == ("ateapi.Control/ResumeActor", _PARENT)


async def test_a_collector_that_is_away_harms_nobody(tmp_path: Path) -> None:
    away = Address("127.0.0.1", 1)
    async with control_plane(tmp_path) as plane, plane.in_process(otlp_collector_address=away):
        await plane.seed("a")
        await plane.register()
        assert (await plane.control().ResumeActor(resume("a"))).resumed


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (f"00-{_TRACE}-{_PARENT}-01", _TRACE),
        ("", ""),
        ("nonsense", ""),
        (f"00-{_TRACE[:-1]}Z-{_PARENT}-01", ""),
        (f"00-{_TRACE}-{_PARENT}-01'; DROP TABLE audit", ""),
    ],
)
def test_only_a_trace_s_id_is_taken_from_a_caller(given: str, found: str) -> None:
    assert trace_id({"traceparent": given}) == found


def test_a_step_is_named_after_its_change() -> None:
    assert step_name(changes.begin_delete("u", pb.DeleteOptions(), now=0)) == "begin_delete"
