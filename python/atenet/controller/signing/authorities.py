"""The authorities of a new installation: made where they are missing, never replaced."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from lightkube import AsyncClient

from atenet.controller.signing import names
from atenet.controller.signing.holding import Holding, create_authority
from atenet.controller.signing.keeper import Keeper
from atenet.errors import AteError

__all__ = ["ensure_authorities"]

_ATTEMPTS = 10


async def ensure_authorities(
    client: AsyncClient,
    namespace: str = names.NAMESPACE,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[str]:
    """Makes what is missing and returns the names of the authorities that were made.

    Safe to run again, and several times at once. Raises AteError or one of UNREACHABLE.
    """
    keeper = Keeper(client, namespace)
    made: list[str] = []
    for name in names.ALL_AUTHORITIES:
        if await _ensure_keys(keeper, name, clock()):
            made.append(name)
        await _ensure_published(keeper, name, clock())
    return made


async def _ensure_keys(keeper: Keeper, name: str, now: datetime) -> bool:
    # A bundle without its key is an installation that lost a Secret: a new authority would orphan
    # every leaf of the old one without a word.
    if name in await keeper.bundles():
        await keeper.kept(name, now)
        return False
    return await keeper.create(Holding(name, create_authority(name, now)))


async def _ensure_published(keeper: Keeper, name: str, now: datetime) -> None:
    for _ in range(_ATTEMPTS):
        holding = (await keeper.kept(name, now)).holding
        bundle = (await keeper.bundles()).get(name, ())
        if holding.current.certificate in bundle:
            return
        if await keeper.publish(name, (holding.current.certificate, *bundle)):
            return
    raise AteError(
        f"ConfigMap {keeper.namespace}/{names.AUTHORITIES_MAP} is changed all the time by somebody else",
        hint="is a second installation at work in this namespace?",
    )
