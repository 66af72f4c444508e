"""Leads or waits: holds the Lease while it can, and says so to whatever is about to write."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import httpx2
from lightkube import ApiError, AsyncClient
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease

from atenet.controller.lease import (
    DURATION,
    RENEW_DEADLINE,
    RETRY,
    Holding,
    LeaseView,
    Observation,
    Step,
    renewed,
    step,
    taken,
)

__all__ = ["Leadership", "NotLeadingError"]

_log = logging.getLogger(__name__)
# One look at the Lease, both requests together: several fit before the holder must give up.
_LOOK_SECONDS = 4.0


class NotLeadingError(Exception):
    """Another replica may be acting: nothing may be written any more."""


class Leadership:
    """`replica`: this process's own name, another one for each start."""

    def __init__(self, client: AsyncClient, namespace: str, name: str, replica: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._me = replica
        self._seen: Observation | None = None
        self._good_until = 0.0

    @property
    def leading(self) -> bool:
        return time.monotonic() < self._good_until

    def check(self) -> None:
        """Raises NotLeadingError unless this replica may write now."""
        if not self.leading:
            raise NotLeadingError

    async def run(self, lead: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
        """Runs `lead()` while this replica holds the Lease, cancelled when it does not any more."""
        leading: asyncio.Task[None] | None = None
        try:
            while not stop.is_set():
                await self._look()
                if self.leading and leading is None:
                    _log.info("leading", extra={"replica": self._me})
                    leading = asyncio.ensure_future(_endless(lead))
                if leading is not None and not self.leading:
                    _log.warning("not leading any more", extra={"replica": self._me})
                    await _end(leading)
                    leading = None
                await _first(stop, leading)
                if leading is not None and leading.done():
                    leading.result()
        finally:
            if leading is not None:
                await _end(leading)
            await self._release()

    async def _look(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                held = await self._take_or_renew(began)
        except (ApiError, httpx2.TransportError, TimeoutError) as error:
            _log.warning("the lease cannot be asked for", extra={"error": str(error)})
            return
        if held:
            # Counted from before the request: the server's answer may have been under way for long.
            self._good_until = began + RENEW_DEADLINE
        else:
            self._good_until = 0.0

    async def _take_or_renew(self, now: float) -> bool:
        found = await self._get()
        view = None if found is None else _view(found)
        what, self._seen = step(view, self._me, self._seen, now)
        if what is Step.WAIT:
            return False
        clock = datetime.now(UTC)
        if view is None:
            return await self._create(taken(None, self._me, clock))
        assert found is not None
        holding = (renewed if what is Step.RENEW else taken)(view, self._me, clock)
        return await self._replace(found, holding)

    async def _get(self) -> Lease | None:
        with _absent():
            return await self._client.get(Lease, self._name, namespace=self._namespace)
        return None

    async def _create(self, holding: Holding) -> bool:
        metadata = ObjectMeta(name=self._name, namespace=self._namespace)
        return await _won(
            self._client.create(Lease(metadata=metadata, spec=_spec(LeaseSpec(), holding)))
        )

    async def _replace(self, found: Lease, holding: Holding) -> bool:
        """With the version that was read: of two that try at a time, one wins."""
        found.spec = _spec(found.spec or LeaseSpec(), holding)
        return await _won(self._client.replace(found))

    async def _release(self) -> None:
        """So that the next one need not wait."""
        if not self.leading:
            return
        self._good_until = 0.0
        with contextlib.suppress(ApiError, httpx2.TransportError, TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                found = await self._get()
                if found is not None and _view(found).holder == self._me:
                    holding = renewed(_view(found), "", datetime.now(UTC))
                    await self._replace(found, holding)


def _view(lease: Lease) -> LeaseView:
    spec = lease.spec or LeaseSpec()
    assert lease.metadata is not None
    return LeaseView(
        holder=spec.holderIdentity or "",
        version=lease.metadata.resourceVersion or "",
        duration=float(spec.leaseDurationSeconds or DURATION),
        transitions=spec.leaseTransitions or 0,
    )


def _spec(spec: LeaseSpec, holding: Holding) -> LeaseSpec:
    spec.holderIdentity = holding.holder
    spec.leaseDurationSeconds = int(DURATION)
    spec.renewTime = holding.renewed
    spec.acquireTime = holding.acquired or spec.acquireTime
    spec.leaseTransitions = holding.transitions
    return spec


async def _won(write: Awaitable[object]) -> bool:
    try:
        await write
    except ApiError as error:
        if error.status.code == 409:  # AlreadyExists or Conflict: another one was first
            return False
        raise
    return True


@contextlib.contextmanager
def _absent():  # type: ignore[no-untyped-def]
    try:
        yield
    except ApiError as error:
        if error.status.code != 404:
            raise


async def _endless(lead: Callable[[], Awaitable[None]]) -> None:
    await lead()
    raise RuntimeError("what the leader does ended by itself")


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _first(stop: asyncio.Event, leading: asyncio.Task[None] | None) -> None:
    """Until the next look: sooner when it is over."""
    stopped = asyncio.ensure_future(stop.wait())
    try:
        waits = [stopped] if leading is None else [stopped, leading]
        await asyncio.wait(waits, timeout=RETRY, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
