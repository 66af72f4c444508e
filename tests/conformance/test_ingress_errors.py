"""What a client is told when its request is not carried."""

import grpc
import pytest

from tests.support import raw_h2
from tests.support.origins import answering
from tests.support.resume_steps import failure, no_room
from tests.support.stage import Stage, new_ref

pytestmark = pytest.mark.router(park_budget=0.5)

Code = grpc.StatusCode
TABLE = {
    Code.NOT_FOUND: (404, "actor-not-found"),
    Code.FAILED_PRECONDITION: (503, "actor-unavailable"),
    Code.ABORTED: (503, "actor-unavailable"),
    Code.UNAVAILABLE: (503, "control-plane-unavailable"),
    Code.DEADLINE_EXCEEDED: (504, "deadline-exceeded"),
    Code.PERMISSION_DENIED: (403, "permission-denied"),
    Code.UNAUTHENTICATED: (401, "unauthenticated"),
    Code.INVALID_ARGUMENT: (500, "internal"),
    Code.INTERNAL: (500, "internal"),
    Code.UNKNOWN: (500, "internal"),
    Code.DATA_LOSS: (500, "internal"),
    Code.UNIMPLEMENTED: (500, "internal"),
    Code.OUT_OF_RANGE: (500, "internal"),
    Code.ALREADY_EXISTS: (500, "internal"),
    Code.CANCELLED: (500, "internal"),
}
IDS = [code.name for code in TABLE]


@pytest.mark.conformance("I-23", "I-24")
@pytest.mark.parametrize(("code", "told"), TABLE.items(), ids=IDS)
async def test_each_answer_of_the_control_plane_has_its_status_and_reason(
    stage: Stage, code: grpc.StatusCode, told: tuple[int, str]
) -> None:
    # B025, B159: distinct per class, and never 429 for a full fleet.
    ref = new_ref()
    stage.api.script(ref, failure(code))
    answer = await stage.get(ref)
    assert (answer.status, answer.head.get("ate-reason")) == told


@pytest.mark.conformance("I-23", "I-24")
async def test_no_room_after_the_budget_is_told_as_such(stage: Stage) -> None:
    # B020, B025
    ref = new_ref()
    stage.api.script(ref, no_room())
    answer = await stage.get(ref)
    assert (answer.status, answer.head.get("ate-reason")) == (
        stage.dataplane.no_capacity_status,
        "no-capacity",
    )
    assert b"room" in answer.data


@pytest.mark.conformance("I-24")
@pytest.mark.parametrize("code", TABLE, ids=IDS)
async def test_a_refusal_is_one_line_of_text_without_internals(
    stage: Stage, code: grpc.StatusCode
) -> None:
    ref = new_ref()
    stage.api.script(ref, failure(code, "pod 10.9.8.7 of worker-3 at ateapi.internal said no"))
    answer = await stage.get(ref)
    assert (answer.head.get("content-type") or "").startswith("text/plain")
    assert answer.data.endswith(b"\n")
    assert answer.data.count(b"\n") == 1
    told = answer.data.decode() + str(answer.head.fields)
    assert not [
        secret
        for secret in ("10.9.8.7", "worker-3", "internal.", "said no", stage.worker.ip)
        if secret in told
    ]


@pytest.mark.conformance("I-24")
@pytest.mark.parametrize(
    "code",
    [Code.UNAVAILABLE, Code.FAILED_PRECONDITION, Code.DEADLINE_EXCEEDED],
    ids=lambda c: c.name,
)
async def test_503_and_504_say_when_to_come_back(stage: Stage, code: grpc.StatusCode) -> None:
    ref = new_ref()
    stage.api.script(ref, failure(code))
    answer = await stage.get(ref)
    assert answer.status in (503, 504)
    assert int(answer.head.get("retry-after") or "0") >= 1


@pytest.mark.conformance("I-24")
async def test_a_refusal_over_http2_is_the_same(stage: Stage) -> None:
    answer = await (await stage.http2()).ask(raw_h2.get("/", new_ref()))
    assert (answer.status, answer.get("ate-reason")) == (404, "actor-not-found")
    assert (answer.get("content-type") or "").startswith("text/plain")
    assert bytes(answer.data).count(b"\n") == 1


@pytest.mark.conformance("I-24")
async def test_a_refusal_keeps_the_connection_for_the_next_request(stage: Stage) -> None:
    connection = await stage.http1()
    for _ in range(3):
        answer = await connection.ask(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert answer.status == 404


@pytest.mark.conformance("I-24")
async def test_a_refusal_of_a_head_request_has_no_body(stage: Stage) -> None:
    connection = await stage.http1()
    for _ in range(2):
        answer = await connection.ask(b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (answer.status, answer.data) == (404, b"")


@pytest.mark.conformance("I-24", "I-04")
async def test_an_actors_own_reason_is_removed(stage: Stage) -> None:
    actor, _ = await stage.actor(answering(503, b"mine", ("ate-reason", "no-capacity")))
    answer = await stage.get(actor)
    assert (answer.status, answer.data) == (503, b"mine")
    assert "ate-reason" not in answer.head.names
