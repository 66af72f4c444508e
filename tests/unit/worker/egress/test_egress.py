"""An activation's egress from its start to its end."""

from pathlib import Path

import grpc
import pytest
from atenet.errors import AteError
from atenet.worker.egress import EgressUnavailableError, WorkerEgress
from atenet.worker.egress.agent import AgentCallError

from tests.support.actor_box import new_incarnation
from tests.support.egress_agent import FakeAgent, RecordedCapture

ACTOR = new_incarnation()
WHERE = Path("/run/netns/nobody")
GATEWAY = "gateway.example:443"


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
def capture() -> RecordedCapture:
    return RecordedCapture()


@pytest.fixture
def egress(agent: FakeAgent, capture: RecordedCapture) -> WorkerEgress:
    return WorkerEgress(agent, capture, policy_refresh=2.0)


@pytest.mark.conformance("E-01", "E-03")
async def test_certificate_and_policy_are_there_when_it_is_open(
    egress: WorkerEgress, agent: FakeAgent, capture: RecordedCapture
) -> None:
    await egress.open(ACTOR, WHERE, GATEWAY)
    assert capture.open_now == {ACTOR.uid: GATEWAY}
    assert len(capture.certificates[ACTOR.uid]) == 1
    assert len(capture.policies[ACTOR.uid]) == 1
    await egress.close(ACTOR)
    await egress.close(ACTOR)
    assert capture.open_now == {}


@pytest.mark.conformance("E-01")
async def test_without_a_gateway_nothing_is_minted(
    egress: WorkerEgress, agent: FakeAgent, capture: RecordedCapture
) -> None:
    await egress.open(ACTOR, WHERE, None)
    assert capture.open_now == {ACTOR.uid: None}
    assert agent.requests == []
    egress.hold(ACTOR)
    egress.resume(ACTOR)
    await egress.close(ACTOR)


@pytest.mark.conformance("E-03")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, EgressUnavailableError),
        (grpc.StatusCode.PERMISSION_DENIED, EgressUnavailableError),
        (grpc.StatusCode.FAILED_PRECONDITION, AgentCallError),
    ],
)
async def test_without_a_certificate_nothing_stays_open(
    egress: WorkerEgress,
    agent: FakeAgent,
    capture: RecordedCapture,
    code: grpc.StatusCode,
    kind: type[AteError],
) -> None:
    agent.fail = code
    with pytest.raises(kind, match="as ordered"):
        await egress.open(ACTOR, WHERE, GATEWAY)
    assert capture.open_now == {}


async def test_a_policy_that_cannot_be_asked_for_stops_no_start(
    egress: WorkerEgress, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.fail_policies = grpc.StatusCode.UNIMPLEMENTED
    await egress.open(ACTOR, WHERE, GATEWAY)
    assert capture.policies == {}
    await egress.close(ACTOR)


async def test_what_cannot_be_opened_is_the_starts_failure(
    egress: WorkerEgress, agent: FakeAgent, capture: RecordedCapture
) -> None:
    capture.fail_opening = AteError("no such namespace")
    with pytest.raises(AteError, match="no such namespace"):
        await egress.open(ACTOR, WHERE, GATEWAY)
    assert agent.requests == []
