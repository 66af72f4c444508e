"""One activation's certificate over its life: first mint, renewal, failures, its end."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from atenet.worker.egress.agent import AgentCallError
from atenet.worker.egress.certificate import UnusableCertificateError
from atenet.worker.egress.credential import ActorCredential
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.support.actor_box import new_incarnation
from tests.support.egress_agent import FakeAgent, RecordedCapture
from tests.support.eventually import eventually
from tests.support.pki import Authority


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
def capture() -> RecordedCapture:
    return RecordedCapture()


@pytest.fixture
async def credential(agent: FakeAgent, capture: RecordedCapture) -> AsyncIterator[ActorCredential]:
    made = ActorCredential(new_incarnation(), agent, capture)
    yield made
    await made.end()


def told(capture: RecordedCapture) -> list[object]:
    return [given for all_given in capture.certificates.values() for given in all_given]


def keys_of(agent: FakeAgent) -> set[bytes]:
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    requests = [x509.load_der_x509_csr(request) for request in agent.requests]
    return {request.public_key().public_bytes(*form) for request in requests}


@pytest.mark.conformance("E-03")
async def test_the_first_one_is_there_when_it_begins_and_the_key_stays_the_same(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.seconds = 2
    await credential.begin()
    assert len(told(capture)) == 1
    await eventually(lambda: len(told(capture)) == 2)
    first, second = (c for all_given in capture.certificates.values() for c in all_given)
    assert first is not None
    assert second is not None
    assert first.chain != second.chain
    assert first.key == second.key
    assert len(keys_of(agent)) == 1


async def test_two_activations_have_two_keys(agent: FakeAgent, capture: RecordedCapture) -> None:
    for _ in range(2):
        made = ActorCredential(new_incarnation(), agent, capture)
        await made.begin()
        await made.end()
    assert len(keys_of(agent)) == 2


@pytest.mark.conformance("E-03")
async def test_a_first_mint_that_fails_is_the_starts_failure(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.fail = grpc.StatusCode.UNAVAILABLE
    with pytest.raises(AgentCallError):
        await credential.begin()
    agent.fail = None
    agent.seconds = -1
    with pytest.raises(UnusableCertificateError):
        await credential.begin()
    assert told(capture) == []


# B134
@pytest.mark.conformance("E-03")
async def test_a_renewal_that_fails_past_the_end_is_made_up_for_as_soon_as_it_can(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.seconds = 2
    await credential.begin()
    agent.fail = grpc.StatusCode.UNAVAILABLE
    await asyncio.sleep(4)  # twice the lifetime
    assert 2 <= len(agent.requests) <= 5, "neither none nor a spin"
    assert len(told(capture)) == 1
    agent.fail, agent.seconds = None, 3600
    await eventually(lambda: len(told(capture)) == 2, seconds=6)


@pytest.mark.conformance("E-03")
async def test_what_is_no_good_is_not_used_and_asked_for_again(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.seconds = 2
    await credential.begin()
    agent.seconds = -1
    await eventually(lambda: len(agent.requests) >= 2)
    assert len(told(capture)) == 1
    agent.authority, agent.seconds = Authority.create("next"), 3600
    await eventually(lambda: len(told(capture)) == 2, seconds=6)


@pytest.mark.conformance("E-03")
@pytest.mark.parametrize("code", ["ABORTED", "FAILED_PRECONDITION", "PERMISSION_DENIED"])
async def test_a_terminal_refusal_ends_the_egress_and_the_renewals(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture, code: str
) -> None:
    agent.seconds = 2
    await credential.begin()
    agent.fail = grpc.StatusCode[code]
    await eventually(lambda: told(capture)[-1] is None)
    asked = len(agent.requests)
    await asyncio.sleep(1.5)
    assert len(agent.requests) == asked


async def test_nothing_is_asked_for_a_frozen_actor_and_all_that_is_due_afterwards(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.seconds = 2
    await credential.begin()
    credential.hold()
    await asyncio.sleep(2.5)
    assert len(agent.requests) == 1
    credential.resume()
    await eventually(lambda: len(told(capture)) == 2, seconds=5)


async def test_a_thaw_before_its_time_asks_for_nothing(
    credential: ActorCredential, agent: FakeAgent
) -> None:
    await credential.begin()
    credential.hold()
    await asyncio.sleep(0.05)
    credential.resume()
    await asyncio.sleep(0.2)
    assert len(agent.requests) == 1


async def test_after_a_terminal_refusal_a_thaw_begins_again(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.seconds = 2
    await credential.begin()
    agent.fail = grpc.StatusCode.PERMISSION_DENIED
    await eventually(lambda: told(capture)[-1] is None)
    agent.fail, agent.seconds = None, 3600
    credential.resume()
    await eventually(lambda: told(capture)[-1] is not None, seconds=3)


async def test_no_renewal_comes_after_the_end(
    credential: ActorCredential, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.seconds = 2
    await credential.begin()
    await credential.end()
    await asyncio.sleep(2.2)
    assert (len(agent.requests), len(told(capture))) == (1, 1)
