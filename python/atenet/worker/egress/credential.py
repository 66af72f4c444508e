"""One activation's tunnel certificate: minted before the workload starts, renewed while it lives."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from atenet.errors import AteError
from atenet.identity.spiffe import worker_for_actor_id
from atenet.worker.egress import renewal
from atenet.worker.egress.agent import Agent, AgentCallError
from atenet.worker.egress.capture import CaptureEnd
from atenet.worker.egress.certificate import (
    TunnelCertificate,
    checked,
    new_key,
    signing_request,
)
from atenet.worker.ingress import Incarnation

__all__ = ["ActorCredential"]

_log = logging.getLogger(__name__)


class ActorCredential:
    """The key is made here, lives as long as this object, and leaves it towards the engine only."""

    def __init__(self, actor: Incarnation, agent: Agent, capture: CaptureEnd) -> None:
        self._actor = actor
        self._agent = agent
        self._capture = capture
        self._uri = worker_for_actor_id(actor.atespace, actor.name)
        self._key = new_key()
        self._request = signing_request(self._key)
        self._ends = datetime.fromtimestamp(0, UTC)
        self._held = False
        self._due = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Mints the first one and keeps it fresh from then on. Raises AteError: AgentCallError, or
        UnusableCertificateError."""
        self._use(await self._mint())
        self._start()

    def hold(self) -> None:
        """Nobody can open a connection, and the control plane would mint for nobody."""
        self._held = True

    def resume(self) -> None:
        """Goes on; what has run out meanwhile is renewed at once."""
        self._held = False
        self._due.set()
        if self._renewing is None or self._renewing.done():
            self._start()

    async def end(self) -> None:
        """No renewal is under way when this returns."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    def _start(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        """Until it is cancelled, or the control plane says that it will not mint any more."""
        pause, failures = renewal.after_success(self._remaining()), 0
        while True:
            await self._sleep(pause)
            try:
                self._use(await self._mint())
            except AgentCallError as e:
                if e.code in renewal.TERMINAL:
                    self._give_up(e)
                    return
                failures += 1
                pause = self._note(e, failures)
            except AteError as e:
                failures += 1
                pause = self._note(e, failures)
            else:
                pause, failures = renewal.after_success(self._remaining()), 0

    async def _sleep(self, seconds: float) -> None:
        """While it is held nothing is due; afterwards it is, if its time has come meanwhile."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._held or loop.time() < until:
            self._due.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._held else until - loop.time()):
                    await self._due.wait()

    async def _mint(self) -> TunnelCertificate:
        chain = await self._agent.mint(self._actor, self._request)
        return checked(chain, self._key, self._uri, datetime.now(UTC))

    def _use(self, certificate: TunnelCertificate) -> None:
        self._capture.set_certificate(self._actor.uid, certificate)
        self._ends = certificate.not_after

    def _remaining(self) -> float:
        return (self._ends - datetime.now(UTC)).total_seconds()

    def _note(self, error: AteError, failures: int) -> float:
        remaining = self._remaining()
        pause = renewal.after_failure(remaining, failures, random.random())  # noqa: S311 - no secret
        extra = self._fields(error) | {"remaining_s": round(remaining), "again_s": round(pause, 1)}
        _log.warning("cannot renew a tunnel certificate, trying on", extra=extra)
        return pause

    def _give_up(self, error: AgentCallError) -> None:
        with suppress(AteError):
            self._capture.drop_certificate(self._actor.uid)
        extra = self._fields(error) | {"code": error.code.name}
        _log.warning("no more tunnel certificates for this actor: its egress ends", extra=extra)

    def _fields(self, error: AteError) -> dict[str, Any]:
        actor = self._actor
        return {
            "atespace": actor.atespace,
            "actor": actor.name,
            "actor_uid": actor.uid,
            "error": error.message,
        }
