"""What the router tells about itself: metrics, spans, the access log, and what it must not tell."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio

from tests.support.dead_worker import refusing_address
from tests.support.eventually import eventually
from tests.support.origins import Exchange, answering, echo
from tests.support.otlp_sink import OtlpGrpcSink, OtlpSink, Span
from tests.support.raw_http1 import request
from tests.support.resume_steps import failure, gated, no_room, resumed, running
from tests.support.scripted_worker import relaying, stale
from tests.support.stage import Stage, new_ref

LIMIT = 30.0
ROUTE = "atenet_router_route_duration_seconds_count"


async def log_lines(stage: Stage, actor: str, count: int) -> list[dict[str, Any]]:
    """So many access-log lines of an actor; the log is written a moment behind."""
    atespace, name = actor.split("/")
    async with asyncio.timeout(LIMIT):
        while True:
            lines = [
                line for line in stage.router.process.log_records() if line.get("actor") == name
            ]
            if len(lines) >= count:
                assert {line["atespace"] for line in lines} == {atespace}
                return lines
            await asyncio.sleep(0.05)


@pytest.mark.conformance("I-38")
async def test_requests_are_counted_by_outcome_and_resume_disposition(own_stage) -> None:  # type: ignore[no-untyped-def]
    # B159
    stage: Stage = await own_stage(park_budget=0.5)
    warm, _ = await stage.actor(echo)
    await stage.get(warm)
    cold, _ = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(cold.ref, gated(gate, resumed(cold.place)))
    burst = asyncio.create_task(stage.many(3, cold))
    await stage.api.wait_for_calls(cold.ref, 1)
    await asyncio.sleep(0.3)
    gate.set()
    await burst
    await stage.get(new_ref())
    full = new_ref()
    stage.api.script(full, no_room())
    await stage.get(full)
    await stage.get("demo")

    metrics = await stage.router.metrics()
    assert metrics.sum(ROUTE, ate_router_outcome="ok", ate_router_resume="none") == 1
    assert metrics.sum(ROUTE, ate_router_outcome="ok", ate_router_resume="triggered") == 1
    assert metrics.sum(ROUTE, ate_router_outcome="ok", ate_router_resume="joined") == 2
    for reason in ("actor-not-found", "no-capacity", "bad-target"):
        assert metrics.sum(ROUTE, ate_router_outcome=reason) == 1


@pytest.mark.conformance("I-38")
async def test_parking_shows_while_it_lasts_and_afterwards(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(park_max=1, park_budget=2.0)
    ref = new_ref()
    stage.api.script(ref, no_room())
    waiting = asyncio.create_task(stage.get(ref))
    await stage.api.wait_for_calls(ref, 2)
    assert (await stage.router.metrics()).sum("atenet_router_parking_active") == 1
    assert (await stage.get(ref)).head.get("ate-reason") == "parking-full"
    await waiting
    metrics = await stage.router.metrics()
    assert metrics.sum("atenet_router_parking_active") == 0
    assert metrics.sum("atenet_router_parking_rejected_total") == 1
    assert (
        metrics.sum("atenet_router_parking_wait_duration_seconds_count", outcome="budget_exhausted")
        == 1
    )


@pytest.mark.conformance("I-38", "I-15")
@pytest.mark.only("agentgateway")
async def test_cache_hits_misses_and_stale_retries_are_counted(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    origin = await stage.origin(echo)
    old, new = (
        await stage.scripted_worker(stale),
        await stage.scripted_worker(relaying(origin.address)),
    )
    actor = stage.actor_on(old.ip)
    stage.api.script(actor.ref, running(actor.place), running(actor.place.moved(new.ip)))
    for _ in range(3):
        await stage.get(actor)
    metrics = await stage.router.metrics()
    assert metrics.sum("atenet_router_cache_hits_total") == 2
    assert metrics.sum("atenet_router_cache_misses_total") == 2
    assert metrics.sum("atenet_router_stale_retries_total") == 1


@pytest.mark.conformance("I-38")
async def test_tunnels_and_worker_connections_are_counted_and_end(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage()
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    await stage.get(stage.actor_on(worker.ip))
    metrics = await stage.router.metrics()
    assert metrics.sum("atenet_router_worker_connections_opened_total") == 1
    assert metrics.sum("atenet_router_tunnels_opened_total") == 1
    await worker.close()

    async def no_tunnel() -> bool:
        return (await stage.router.metrics()).sum("atenet_router_tunnels") == 0

    await eventually(no_tunnel)


@pytest.mark.conformance("I-38")
async def test_actor_names_are_never_a_label(own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(park_budget=0.5)
    actor, _ = await stage.actor(echo)
    missing = new_ref()
    await stage.get(actor)
    await stage.get(missing)
    text = (await stage.router.metrics()).text
    halves = [*actor.ref.split("/"), *missing.split("/")]
    assert not [half for half in halves if half in text]


@pytest.mark.conformance("I-38")
@pytest.mark.router(park_budget=0.5)
async def test_each_request_leaves_one_access_log_line(stage: Stage) -> None:
    # B161
    actor, _ = await stage.actor(echo)
    answer = await stage.request(actor, "POST", "/path?query=1", body=b"x" * 1000)
    (line,) = await log_lines(stage, actor.ref, 1)
    assert (line["status"], line["outcome"], line["resume"]) == (200, "ok", "none")
    assert (line["bytes_in"], line["bytes_out"]) == (1000, len(answer.data))
    assert line["upstream"] == f"{stage.worker.ip}:8443"
    assert line["route_ms"] >= 0


CAUSES = {
    "permission-denied": (grpc.StatusCode.PERMISSION_DENIED, 403),
    "unauthenticated": (grpc.StatusCode.UNAUTHENTICATED, 401),
    "actor-not-found": (grpc.StatusCode.NOT_FOUND, 404),
    "no-capacity": (grpc.StatusCode.RESOURCE_EXHAUSTED, None),
    "control-plane-unavailable": (grpc.StatusCode.UNAVAILABLE, 503),
    "deadline-exceeded": (grpc.StatusCode.DEADLINE_EXCEEDED, 504),
    "internal": (grpc.StatusCode.INTERNAL, 500),
}


@pytest.mark.conformance("I-38")
@pytest.mark.router(park_budget=0.5)
@pytest.mark.parametrize("reason", CAUSES)
async def test_each_refusal_is_logged_with_its_reason(stage: Stage, reason: str) -> None:
    # B159
    code, status = CAUSES[reason]
    ref = new_ref()
    stage.api.script(ref, failure(code))
    await stage.get(ref)
    lines = await log_lines(stage, ref, 1)
    assert [line["reason"] for line in lines if "reason" in line] == [reason]
    assert lines[-1]["status"] == (status or stage.dataplane.no_capacity_status)


@pytest.mark.conformance("I-38", "I-33")
@pytest.mark.router(stream_idle=1.0)
async def test_a_stream_that_was_cut_for_silence_says_so_in_the_log(stage: Stage) -> None:
    # B017
    async def silent(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        await exchange.reader.read(1)
        exchange.keep_alive = False

    actor, _ = await stage.actor(silent)
    connection = await stage.http1()
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    await connection.rest()
    (line,) = await log_lines(stage, actor.ref, 1)
    assert line["outcome"] != "ok"
    assert "idle" in str(line)


@pytest.mark.conformance("I-38")
@pytest.mark.router(park_budget=0.5)
@pytest.mark.parametrize("cause", ["served", "not found", "dead worker", "malformed", "no room"])
async def test_no_header_value_or_query_is_ever_logged(stage: Stage, cause: str) -> None:
    # B163
    secret = secrets.token_hex(8)
    refs = {
        "served": (await stage.actor(answering(200, b"", ("set-cookie", f"s={secret}"))))[0].ref,
        "not found": new_ref(),
        "dead worker": stage.actor_on(refusing_address()).ref,
        "malformed": f"Not/{secret}",
        "no room": new_ref(),
    }
    stage.api.script(refs["no room"], no_room())
    carried = [
        ("authorization", f"Bearer {secret}"),
        ("cookie", f"c={secret}"),
        ("x-api-key", secret),
    ]
    await stage.request(refs[cause], "GET", f"/?token={secret}", *carried)
    await asyncio.sleep(0.3)
    assert secret not in stage.router.process.log


# -- traces


def traceparent(trace_id: str) -> tuple[str, str]:
    return ("traceparent", f"00-{trace_id}-{secrets.token_hex(8)}-01")


def is_resume(span: Span) -> bool:
    return "ResumeActor" in span.name


@pytest_asyncio.fixture(loop_scope="session")
async def sink() -> AsyncIterator[OtlpSink]:
    collector = await OtlpSink.start()
    yield collector
    await collector.close()


@pytest.mark.conformance("I-37")
async def test_the_callers_trace_reaches_the_control_plane_and_the_actor(stage: Stage) -> None:
    # B157: also without a collector.
    actor, origin = await stage.actor(echo)
    trace_id = secrets.token_hex(16)
    await stage.request(actor, "GET", "/", traceparent(trace_id), ("tracestate", "vendor=1"))
    (call,) = [call for call in stage.api.seen if call.actor == actor.ref]
    assert call.metadata["traceparent"].split("-")[1] == trace_id
    assert (origin.heads[0].get("traceparent") or "").split("-")[1] == trace_id
    assert origin.heads[0].get("tracestate") == "vendor=1"


@pytest.mark.conformance("I-37")
async def test_a_request_and_its_resume_call_are_spans_of_one_trace(sink, own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(tracing=sink.address)
    actor, origin = await stage.actor(echo)
    stage.api.script(actor.ref, resumed(actor.place))
    trace_id = secrets.token_hex(16)
    header = traceparent(trace_id)
    await stage.request(actor, "GET", "/", header)
    call = await sink.wait_for(trace_id, is_resume)
    *_, ingress = await sink.lineage(call, header[1].split("-")[2])
    assert ingress is not call
    (seen,) = [seen for seen in stage.api.seen if seen.actor == actor.ref]
    assert seen.metadata["traceparent"].split("-")[1:3] == [trace_id, call.span_id]
    told = (origin.heads[0].get("traceparent") or "").split("-")
    assert told[1:3] == [trace_id, ingress.span_id]


@pytest.mark.conformance("I-37")
@pytest.mark.only("agentgateway")
async def test_a_collector_that_speaks_grpc_gets_the_same_spans(own_stage) -> None:  # type: ignore[no-untyped-def]
    collector = await OtlpGrpcSink.start()
    stage: Stage = await own_stage(tracing=collector.address, tracing_protocol="grpc")
    stage.closing(collector.close)
    actor, _ = await stage.actor(echo)
    trace_id = secrets.token_hex(16)
    header = traceparent(trace_id)
    await stage.request(actor, "GET", "/", header)
    call = await collector.wait_for(trace_id, is_resume)
    *_, ingress = await collector.lineage(call, header[1].split("-")[2])
    assert ingress is not call


@pytest.mark.conformance("I-37")
async def test_a_joiners_span_links_to_the_flights(sink, own_stage) -> None:  # type: ignore[no-untyped-def]
    # B157
    stage: Stage = await own_stage(tracing=sink.address)
    actor, origin = await stage.actor(echo)
    gate = asyncio.Event()
    stage.api.script(actor.ref, gated(gate, resumed(actor.place)))
    first_trace, joiner_trace = secrets.token_hex(16), secrets.token_hex(16)
    first = asyncio.create_task(stage.request(actor, "GET", "/first", traceparent(first_trace)))
    await stage.api.wait_for_calls(actor.ref, 1)
    joining = traceparent(joiner_trace)
    joiner = asyncio.create_task(stage.request(actor, "GET", "/joiner", joining))
    await asyncio.sleep(1.0)
    gate.set()
    await asyncio.gather(first, joiner)
    call = await sink.wait_for(first_trace, is_resume)
    joined = await sink.wait_for(joiner_trace, lambda span: span.links)
    assert joined.links == [(first_trace, call.span_id)]
    # Whoever carries the request, the span is one of its own.
    await sink.lineage(joined, joining[1].split("-")[2])
    assert not any(map(is_resume, sink.of(joiner_trace)))
    traces = {head.target: (head.get("traceparent") or "").split("-")[1] for head in origin.heads}
    assert traces == {"/first": first_trace, "/joiner": joiner_trace}


@pytest.mark.conformance("I-37")
async def test_a_callers_choice_not_to_record_is_kept(sink, own_stage) -> None:  # type: ignore[no-untyped-def]
    stage: Stage = await own_stage(tracing=sink.address)
    actor, origin = await stage.actor(echo)
    silent, recorded = secrets.token_hex(16), secrets.token_hex(16)
    header = ("traceparent", traceparent(silent)[1].removesuffix("01") + "00")
    await stage.request(actor, "GET", "/", header)
    await stage.request(actor, "GET", "/", traceparent(recorded))
    await sink.wait_for(recorded, lambda span: "ate.actor" in span.attributes)
    told = (origin.heads[0].get("traceparent") or "").split("-")
    assert (told[1], told[3], sink.of(silent)) == (silent, "00", [])


@pytest.mark.conformance("I-37", "I-12")
async def test_a_client_cannot_have_its_trace_header_removed_by_naming_it(sink, own_stage) -> None:  # type: ignore[no-untyped-def]
    # B009: the router's own fields are set after the client's list was applied.
    stage: Stage = await own_stage(tracing=sink.address)
    actor, origin = await stage.actor(echo)
    await stage.request(actor, "GET", "/", ("connection", ""), ("connection", "traceparent"))
    assert origin.heads[0].get("traceparent") is not None
