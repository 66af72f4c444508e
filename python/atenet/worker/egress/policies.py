"""Keeps the relays' policies what the control plane has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

from atenet.errors import AteError
from atenet.proto import ateapi_pb2
from atenet.worker.egress.agent import Agent, AgentCallError
from atenet.worker.egress.capture import CaptureEnd
from atenet.worker.ingress import Incarnation

__all__ = ["Policies"]

_log = logging.getLogger(__name__)
_MOST_ASKED = 1000


class Policies:
    """`every`: seconds between two looks, all actors in one call."""

    def __init__(self, agent: Agent, capture: CaptureEnd, every: float) -> None:
        self._agent = agent
        self._capture = capture
        self._every = every
        self._known: dict[str, ateapi_pb2.KnownEgressPolicy] = {}
        self._taking = asyncio.Lock()
        self._due = asyncio.Event()
        self._reached: bool | None = None

    async def add(self, actor: Incarnation) -> None:
        """Its relay knows the policy when this returns, unless the control plane cannot be asked:
        then it answers that it does not know, and learns it later."""
        self._begin(actor)
        await self._look([actor.uid])

    def expect(self, actor: Incarnation) -> None:
        """The same, behind the caller's back."""
        self._begin(actor)
        self._due.set()

    def remove(self, uid: str) -> None:
        self._known.pop(uid, None)

    async def run(self) -> None:
        """Looks again and again, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._due.wait()
            self._due.clear()
            uids = list(self._known)
            for start in range(0, len(uids), _MOST_ASKED):
                await self._look(uids[start : start + _MOST_ASKED])

    def _begin(self, actor: Incarnation) -> None:
        self._known[actor.uid] = ateapi_pb2.KnownEgressPolicy(
            actor=ateapi_pb2.ObjectRef(atespace=actor.atespace, name=actor.name),
            actor_uid=actor.uid,
        )

    async def _look(self, uids: Iterable[str]) -> None:
        known = [self._known[uid] for uid in uids if uid in self._known]
        if not known:
            return
        try:
            present = await self._agent.policies(known)
        except AgentCallError as e:
            if self._reached is not False:
                extra = {"code": e.code.name, "error": e.message}
                _log.warning("cannot ask for egress policies, trying on", extra=extra)
            self._reached = False
            return
        self._reached = True
        asked = {k.actor_uid: k for k in known}
        for found in present:
            if (about := asked.get(found.actor_uid)) is not None:
                await self._take(found, about)

    async def _take(
        self, found: ateapi_pb2.PresentEgressPolicy, asked: ateapi_pb2.KnownEgressPolicy
    ) -> None:
        """An answer is about what was asked. What is known is replaced, never changed, so that one which
        was asked before the last change, and may be older than that, does not fit any more."""
        uid = found.actor_uid
        async with self._taking:
            if (known := self._known.get(uid)) is not asked:
                if known is not None:
                    self._due.set()  # it may as well be the newer one
                return
            try:
                if found.unchanged and asked.policy_uid:
                    self._capture.confirm_policy(uid)
                    return
                # That there is none is no policy that the relay has: it is told so each time.
                await self._capture.set_policy(uid, found.policy)
            except AteError as e:
                # It is being closed meanwhile.
                _log.debug("a policy came too late", extra={"error": e.message})
                return
            if self._known.get(uid) is asked:
                self._known[uid] = ateapi_pb2.KnownEgressPolicy(
                    actor=asked.actor,
                    actor_uid=uid,
                    policy_uid=found.policy.metadata.uid,
                    policy_version=found.policy.metadata.version,
                )
