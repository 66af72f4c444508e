"""What a control plane tells by itself, and what a router makes of it.

All other tests run against one that tells nothing: a router works without.
"""

import asyncio

import grpc
import pytest

from tests.support.eventually import eventually, within
from tests.support.origins import echo
from tests.support.pki import Pki
from tests.support.resume_steps import failure, no_room, resumed, running
from tests.support.stage import Stage
from tests.support.telling_ateapi import TellingAteapi

# Nobody asks again by itself within a test.
NEVER = 600.0
PATIENT = {"retry_interval": NEVER, "park_budget": 2 * NEVER, "drain_timeout": 3 * NEVER}


async def told(own_stage, pki: Pki, **settings) -> tuple[Stage, TellingAteapi]:  # type: ignore[no-untyped-def]
    """A router of the test's own that watches a control plane of the test's own."""
    api = await TellingAteapi(pki).start()
    stage: Stage = await own_stage(api_address=api.address, **settings)
    stage.closing(api.close)
    await eventually(lambda: api.watchers == 1)
    return stage, api


async def parked(stage: Stage) -> None:
    async def waits() -> bool:
        return (await stage.router.metrics()).sum("atenet_router_parking_active") == 1

    await eventually(waits)


@pytest.mark.conformance("I-19")
async def test_a_parked_request_is_served_as_soon_as_there_is_room(own_stage, pki: Pki) -> None:  # type: ignore[no-untyped-def]
    stage, api = await told(own_stage, pki, **PATIENT)
    actor, _ = await stage.actor(echo)
    api.script(actor.ref, no_room())
    waiting = asyncio.create_task(stage.get(actor))
    await parked(stage)
    api.script(actor.ref, resumed(actor.place))
    api.free_capacity()
    assert (await within(waiting, 20)).status == 200


@pytest.mark.conformance("I-19")
async def test_a_request_for_an_actor_in_motion_is_served_as_soon_as_it_rests(  # type: ignore[no-untyped-def]
    own_stage, pki: Pki
) -> None:
    stage, api = await told(own_stage, pki, **PATIENT)
    actor, _ = await stage.actor(echo)
    api.script(actor.ref, failure(grpc.StatusCode.FAILED_PRECONDITION))
    waiting = asyncio.create_task(stage.get(actor))
    await parked(stage)
    api.script(actor.ref, resumed(actor.place.resumed_here()))
    api.end_assignment(actor.place)
    assert (await within(waiting, 20)).status == 200


@pytest.mark.only("agentgateway")
@pytest.mark.conformance("I-15")
async def test_an_assignment_that_ended_is_not_used_again(own_stage, pki: Pki) -> None:  # type: ignore[no-untyped-def]
    # B031
    stage, api = await told(own_stage, pki, cache_ttl=NEVER)
    actor, _ = await stage.actor(echo)
    api.place(actor.place)
    for _ in range(3):
        assert (await stage.get(actor)).status == 200
    before = api.calls[actor.ref]
    api.script(actor.ref, running(actor.place.resumed_here()))
    api.end_assignment(actor.place)

    async def asked_again() -> bool:
        assert (await stage.get(actor)).status == 200
        return api.calls[actor.ref] > before

    await eventually(asked_again)
    after = api.calls[actor.ref]
    for _ in range(3):
        assert (await stage.get(actor)).status == 200
    assert api.calls[actor.ref] == after, "the newer assignment is remembered"
