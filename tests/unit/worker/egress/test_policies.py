"""Relays know the policies that the control plane has."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.egress.policies import Policies

from tests.support.actor_box import new_incarnation
from tests.support.egress_agent import FakeAgent, RecordedCapture
from tests.support.egress_policies import http, policy
from tests.support.eventually import eventually

ACTOR = new_incarnation()


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
def capture() -> RecordedCapture:
    return RecordedCapture(open_now={ACTOR.uid: None})


@pytest.fixture
async def policies(agent: FakeAgent, capture: RecordedCapture) -> AsyncIterator[Policies]:
    made = Policies(agent, capture, every=0.05)
    loop = asyncio.ensure_future(made.run())
    yield made
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


@dataclass
class Holding(FakeAgent):
    """Its answers are of the moment in which it is asked; those in `held`, counted from 0, arrive when released."""

    held: dict[int, asyncio.Event] = field(default_factory=dict)

    async def policies(self, known: Sequence[pb.KnownEgressPolicy]) -> list[pb.PresentEgressPolicy]:
        number = len(self.asked)
        answer = await super().policies(known)
        if (release := self.held.get(number)) is not None:
            await release.wait()
        return answer


def of_version(version: int, *names: str) -> pb.EgressPolicy:
    return policy(*(http(name) for name in names), uid="p", version=version)


@pytest.mark.conformance("E-23")
async def test_a_relay_knows_the_policy_when_its_actor_starts_and_each_change_soon(
    policies: Policies, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.policy[ACTOR.uid] = of_version(1, "a.example")
    await policies.add(ACTOR)
    assert capture.policies[ACTOR.uid] == [of_version(1, "a.example")]

    await eventually(lambda: capture.confirmed.get(ACTOR.uid, 0) > 2)
    assert len(capture.policies[ACTOR.uid]) == 1

    agent.policy[ACTOR.uid] = of_version(2, "b.example")
    await eventually(lambda: capture.policies[ACTOR.uid][-1] == of_version(2, "b.example"))
    del agent.policy[ACTOR.uid]
    await eventually(lambda: capture.policies[ACTOR.uid][-1] == pb.EgressPolicy())


async def test_that_there_is_none_is_known_too(
    policies: Policies, agent: FakeAgent, capture: RecordedCapture
) -> None:
    await policies.add(ACTOR)
    assert capture.policies[ACTOR.uid] == [pb.EgressPolicy()]
    agent.policy[ACTOR.uid] = of_version(1, "a.example")
    await eventually(lambda: capture.policies[ACTOR.uid][-1] == of_version(1, "a.example"))


async def test_a_control_plane_that_cannot_be_asked_confirms_nothing(
    policies: Policies, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.fail_policies = grpc.StatusCode.UNAVAILABLE
    await policies.add(ACTOR)
    assert ACTOR.uid not in capture.policies
    agent.fail_policies = None
    await eventually(lambda: ACTOR.uid in capture.policies)


async def test_an_actor_that_is_somewhere_else_is_not_confirmed(
    policies: Policies, agent: FakeAgent, capture: RecordedCapture
) -> None:
    agent.policy[ACTOR.uid] = of_version(1, "a.example")
    await policies.add(ACTOR)
    agent.not_here.add(ACTOR.uid)
    await asyncio.sleep(0.1)
    before, asked = capture.confirmed.get(ACTOR.uid), len(agent.asked)
    await eventually(lambda: len(agent.asked) > asked + 2)
    assert capture.confirmed.get(ACTOR.uid) == before


async def test_all_actors_are_asked_for_in_one_call_and_none_when_there_is_none(
    policies: Policies, agent: FakeAgent, capture: RecordedCapture
) -> None:
    other = new_incarnation("other")
    capture.open_now[other.uid] = None
    for actor in (ACTOR, other):
        await policies.add(actor)
    await eventually(lambda: [ACTOR.uid, other.uid] in agent.asked)
    policies.remove(ACTOR.uid)
    policies.remove(other.uid)
    await asyncio.sleep(0.1)
    asked = len(agent.asked)
    await asyncio.sleep(0.2)
    assert len(agent.asked) == asked


async def test_a_relay_that_is_being_closed_is_no_fault(
    policies: Policies, agent: FakeAgent, capture: RecordedCapture
) -> None:
    gone = new_incarnation("gone")
    agent.policy[gone.uid] = of_version(1)
    await policies.add(gone)
    policies.remove(gone.uid)
    await policies.add(ACTOR)
    await eventually(lambda: [ACTOR.uid] in agent.asked)


async def test_an_answer_from_before_a_pause_is_not_taken_for_one_after_it(
    capture: RecordedCapture,
) -> None:
    release = asyncio.Event()
    agent = Holding(held={1: release})
    agent.policy[ACTOR.uid] = of_version(1, "a.example")
    policies = Policies(agent, capture, every=3600)
    await policies.add(ACTOR)
    late = asyncio.ensure_future(policies._look([ACTOR.uid]))
    await eventually(lambda: len(agent.asked) == 2)

    policies.remove(ACTOR.uid)
    policies.expect(ACTOR)
    release.set()
    await late
    assert capture.policies[ACTOR.uid] == [of_version(1, "a.example")]
    assert ACTOR.uid not in capture.confirmed

    loop = asyncio.ensure_future(policies.run())
    await eventually(lambda: len(capture.policies[ACTOR.uid]) == 2)
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    assert capture.policies[ACTOR.uid] == [of_version(1, "a.example")] * 2


@pytest.mark.parametrize("removed", [False, True])
async def test_an_older_policy_that_arrives_last_does_not_win(
    capture: RecordedCapture, removed: bool
) -> None:
    release = asyncio.Event()
    agent = Holding(held={1: release})
    policies = Policies(agent, capture, every=3600)
    agent.policy[ACTOR.uid] = of_version(1, "a.example")
    await policies.add(ACTOR)

    agent.policy[ACTOR.uid] = of_version(2, "b.example")
    late = asyncio.ensure_future(policies._look([ACTOR.uid]))
    await eventually(lambda: len(agent.asked) == 2)
    newest = pb.EgressPolicy()
    if removed:
        del agent.policy[ACTOR.uid]
    else:
        agent.policy[ACTOR.uid] = newest = of_version(3, "c.example")
    await policies._look([ACTOR.uid])
    release.set()
    await late
    assert capture.policies[ACTOR.uid] == [of_version(1, "a.example"), newest]


async def test_a_newer_policy_that_was_asked_for_too_early_is_asked_for_again_at_once(
    capture: RecordedCapture,
) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    agent = Holding(held={1: first, 2: second})
    policies = Policies(agent, capture, every=3600)
    await policies.add(ACTOR)
    looks = []
    for version in (1, 2):
        agent.policy[ACTOR.uid] = of_version(version, "a.example")
        looks.append(asyncio.ensure_future(policies._look([ACTOR.uid])))
        await eventually(lambda version=version: len(agent.asked) == 1 + version)  # type: ignore[misc]
    for look, release in zip(looks, (first, second), strict=True):
        release.set()
        await look
    assert capture.policies[ACTOR.uid][-1] == of_version(1, "a.example")

    loop = asyncio.ensure_future(policies.run())
    await eventually(lambda: capture.policies[ACTOR.uid][-1] == of_version(2, "a.example"))
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


async def test_a_control_plane_that_hangs_for_one_actor_holds_up_no_other(
    capture: RecordedCapture,
) -> None:
    agent = Holding(held={0: asyncio.Event()})
    other = new_incarnation("other")
    capture.open_now[other.uid] = None
    policies = Policies(agent, capture, every=3600)
    hangs = asyncio.ensure_future(policies.add(ACTOR))
    await eventually(lambda: len(agent.asked) == 1)
    await policies.add(other)
    assert capture.policies[other.uid] == [pb.EgressPolicy()]
    hangs.cancel()
    await asyncio.gather(hangs, return_exceptions=True)
