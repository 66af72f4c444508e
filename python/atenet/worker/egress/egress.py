"""Each activation's egress from its start to its end, as the supervisor asks for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import grpc

from atenet.errors import AteError
from atenet.worker.egress.agent import Agent, AgentCallError
from atenet.worker.egress.capture import CaptureEnd
from atenet.worker.egress.credential import ActorCredential
from atenet.worker.egress.policies import Policies
from atenet.worker.ingress import Incarnation

__all__ = ["Egress", "EgressUnavailableError", "WorkerEgress"]

# Not now, says the control plane, or nobody says anything: the start is to be tried again.
_NOT_NOW = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        # The store does not place it here any more: another start has begun.
        grpc.StatusCode.PERMISSION_DENIED,
    }
)


class EgressUnavailableError(AteError):
    """There is no certificate for the actor now; a later start may have one."""


class Egress(Protocol):
    async def open(self, actor: Incarnation, gateway_namespace: Path, gateway: str | None) -> None:
        """Whatever the actor dials and asks from now on goes its way. `gateway`: host:port; None:
        it reaches nothing. Raises AteError, and then nothing is open."""

    def hold(self, actor: Incarnation) -> None:
        """The actor is frozen: nothing is asked of the control plane for it."""

    def resume(self, actor: Incarnation) -> None:
        """It goes on."""

    async def close(self, actor: Incarnation) -> None:
        """Resets what runs; returns when nothing is left. Repeatable."""


class WorkerEgress:
    """`policy_refresh`: seconds between two looks at actors' policies."""

    def __init__(self, agent: Agent, capture: CaptureEnd, *, policy_refresh: float) -> None:
        self._agent = agent
        self._capture = capture
        self._policies = Policies(agent, capture, policy_refresh)
        self._credentials: dict[str, ActorCredential] = {}

    async def run(self) -> None:
        """Keeps the relays' policies fresh, until cancelled."""
        await self._policies.run()

    async def open(self, actor: Incarnation, gateway_namespace: Path, gateway: str | None) -> None:
        await self._capture.open(actor, gateway_namespace, gateway)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._policies.add(actor))
                if gateway is not None:
                    both.create_task(self._certify(actor))
        except BaseExceptionGroup as failed:
            await self.close(actor)
            raise failed.exceptions[0] from failed
        except BaseException:
            await self.close(actor)
            raise

    def hold(self, actor: Incarnation) -> None:
        self._policies.remove(actor.uid)
        if (credential := self._credentials.get(actor.uid)) is not None:
            credential.hold()

    def resume(self, actor: Incarnation) -> None:
        self._policies.expect(actor)
        if (credential := self._credentials.get(actor.uid)) is not None:
            credential.resume()

    async def close(self, actor: Incarnation) -> None:
        self._policies.remove(actor.uid)
        try:
            if (credential := self._credentials.pop(actor.uid, None)) is not None:
                await credential.end()
        finally:
            await self._capture.close_actor(actor.uid)

    async def _certify(self, actor: Incarnation) -> None:
        credential = ActorCredential(actor, self._agent, self._capture)
        try:
            await credential.begin()
        except AgentCallError as e:
            if e.code in _NOT_NOW:
                raise EgressUnavailableError(
                    f"no tunnel certificate for {actor} now: {e.message}"
                ) from e
            raise
        self._credentials[actor.uid] = credential
