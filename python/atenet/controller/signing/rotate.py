"""Rotates an authority, one step after the other, each of them compared and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import cast

from cryptography import x509
from lightkube import AsyncClient

from atenet.controller.signing import names
from atenet.controller.signing.holding import Holding, fingerprint
from atenet.controller.signing.keeper import Keeper, Kept
from atenet.controller.signing.rotation import PACES, Action, Pace, Stage, Step, View, step
from atenet.controller.signing.trust import Trust
from atenet.identity.renewal import AuthorityStep, authority_step

__all__ = ["Rotator", "rotate"]

_log = logging.getLogger(__name__)

Stale = Callable[[str, x509.Certificate, datetime], Awaitable[int | None]]


async def _unknown(_name: str, _current: x509.Certificate, _since: datetime) -> int | None:
    return None


class Rotator:
    """Looks at an authority and takes its next step. Raises AteError or one of UNREACHABLE.

    `stale` counts the leaves that are not of the authority given, or are so only since a moment that
    not everybody has read them; where that can be known.
    """

    def __init__(
        self,
        keeper: Keeper,
        trust: Trust,
        *,
        stale: Stale = _unknown,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keeper = keeper
        self._trust = trust
        self._stale = stale
        self._clock = clock

    async def look(self, name: str, *, pace: Pace | None = None) -> Step:
        """Where the rotation is, and what would be next; nothing is written."""
        _, _, next_step = await self._next(name, pace or PACES[name], begin=False)
        return next_step

    async def due(self, name: str) -> bool:
        """Whether its age asks for a rotation."""
        current = (await self._keeper.kept(name, self._clock())).holding.current.certificate
        start, end = current.not_valid_before_utc, current.not_valid_after_utc
        age = authority_step(start, end, self._clock(), has_successor=False)
        return age is AuthorityStep.PREPARE

    async def advance(self, name: str, *, begin: bool = False, pace: Pace | None = None) -> Step:
        """Takes the next step, or says what it waits for."""
        kept, view, next_step = await self._next(name, pace or PACES[name], begin=begin)
        if next_step.action is Action.NONE:
            return next_step
        if not await self._take(next_step.action, kept, view):
            # Both read the same and one was first: what there is to do now is another question.
            return Step(next_step.stage, Action.NONE, "what somebody else changed meanwhile")
        _log.info("authority rotated on", extra={"authority": name, "step": next_step.action.value})
        return next_step

    async def _next(self, name: str, pace: Pace, *, begin: bool) -> tuple[Kept, View, Step]:
        now = self._clock()
        kept = await self._keeper.kept(name, now)
        bundle = (await self._keeper.bundles()).get(name, ())
        view = await self._view(name, kept.holding, bundle, now - pace.propagation)
        return kept, view, step(view, now, pace, begin=begin)

    async def _view(
        self, name: str, holding: Holding, bundle: tuple[x509.Certificate, ...], read: datetime
    ) -> View:
        current, following = holding.current.certificate, holding.following
        by_print = {fingerprint(each): each for each in bundle}
        retiring = holding.retiring and by_print.get(holding.retiring)
        return View(
            current,
            None if following is None else following.certificate,
            bundle,
            spread=following is None or await self._trust.spread(name),
            trusted_since=holding.trusted_since,
            switched_at=holding.switched_at,
            # Where it is in the notes alone, RETIRE was cut short between its two writes.
            retiring=retiring or holding.retiring,
            stale=await self._stale(name, current, read) if holding.retiring else None,
        )

    async def _take(self, action: Action, kept: Kept, view: View) -> bool:
        holding, now = kept.holding, self._clock()
        if action is Action.PREPARE:
            return await self._keeper.store(kept, holding.prepared(now))
        if action is Action.NOTE:
            return await self._keeper.store(kept, holding.trusted(now))
        if action is Action.SWITCH:
            return await self._keeper.store(kept, holding.switched(now))
        bundle = cast("tuple[x509.Certificate, ...]", view.bundle)
        if action is Action.PUBLISH:
            known = [holding.current, holding.following]
            added = [each.certificate for each in known if each is not None]
            merged = dict.fromkeys([*added, *bundle])
            return await self._keeper.publish(holding.name, merged)
        left = [each for each in bundle if fingerprint(each) != holding.retiring]
        if len(left) != len(bundle) and not await self._keeper.publish(holding.name, left):
            return False
        return await self._keeper.store(kept, holding.rested())


async def rotate(
    client: AsyncClient,
    name: str,
    *,
    namespace: str = names.NAMESPACE,
    pace: Pace | None = None,
    report: Callable[[Step], None] = lambda _: None,
    wait: bool = True,
    every: float = 2.0,
) -> Step:
    """Begins a rotation, or goes on with the one under way, until it is over.

    `report` is told each step. With `wait` false it ends where there is something to wait for, else it
    looks again `every` so many seconds. Safe to cut short anywhere and to run again. Raises AteError or
    one of UNREACHABLE.
    """
    names.check_authority_name(name)
    rotator = Rotator(Keeper(client, namespace), Trust(client, namespace))
    begin = True
    while True:
        taken = await rotator.advance(name, begin=begin, pace=pace)
        report(taken)
        begin = begin and taken.stage is Stage.REST and taken.action is not Action.PREPARE
        if taken.action is Action.NONE:
            if not wait or (taken.stage is Stage.REST and not taken.waiting_for):
                return taken
            await asyncio.sleep(every)
