"""All of identity in a cluster, as loops that go on until they are told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from lightkube import AsyncClient
from lightkube.operators import exists
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod

from atenet.controller.backoff import Backoff
from atenet.controller.signing import names
from atenet.controller.signing.cluster import UNREACHABLE, changes
from atenet.controller.signing.keeper import Keeper
from atenet.controller.signing.keys import Keys
from atenet.controller.signing.leaf_secrets import POOL_LABEL, LeafSecrets
from atenet.controller.signing.node_requests import NodeRequests
from atenet.controller.signing.pod_certificates import PodCertificates
from atenet.controller.signing.rotate import Rotator
from atenet.controller.signing.rotation import Action
from atenet.controller.signing.settings import SigningSettings
from atenet.controller.signing.trust import Trust
from atenet.errors import AteError
from atenet.identity import credential, spiffe
from atenet.identity.local import pod_want

__all__ = ["run_signing"]

_log = logging.getLogger(__name__)

# Everything is looked at this often even where no watch told of a change.
_TRUST_SECONDS = 5.0
_LEAVES_SECONDS = 30.0
_ROTATE_SECONDS = 30.0
_OWN_SECONDS = 60.0
_FIRST_RETRY = 0.5

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


async def run_signing(
    client: AsyncClient, settings: SigningSettings, stop: asyncio.Event, *, clock: Clock = _now
) -> None:
    """Signs, renews, rotates and publishes until `stop` is set. A failure is tried again."""
    signing = _Signing(client, settings, clock)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each) for each in signing.loops()]
        await stop.wait()
        for each in running:
            each.cancel()


class _Signing:
    def __init__(self, client: AsyncClient, settings: SigningSettings, clock: Clock) -> None:
        keeper = Keeper(client, settings.namespace)
        self._client = client
        self._settings = settings
        self._clock = clock
        self._keys = Keys(keeper, clock)
        self._trust = Trust(client, settings.namespace, cluster_bundles=settings.pod_certificates)
        self._leaves = LeafSecrets(client, self._keys, clock)
        stale = {} if settings.pod_certificates else {"stale": self._leaves.stale}
        self._rotator = Rotator(keeper, self._trust, clock=clock, **stale)
        self._look_at_trust, self._look_at_leaves = asyncio.Event(), asyncio.Event()

    def loops(self) -> list[Any]:
        """Everything that goes on beside each other."""
        look = self._look_at_trust
        found = [
            _often("trust bundles", self._trust.reconcile, _TRUST_SECONDS, look),
            self._watch(look, ConfigMap, namespace="*", fields={"metadata.name": names.TRUST_MAP}),
            self._watch(look, Namespace, labels={names.WANTS_TRUST_LABEL: "true"}),
            _often("rotation", self._rotate_due, _ROTATE_SECONDS),
        ]
        if self._settings.own_credential is not None:
            found.append(_often("our own certificate", self._own, _OWN_SECONDS))
        return found + (self._requests() if self._settings.pod_certificates else self._secrets())

    def _requests(self) -> list[Any]:
        pods = PodCertificates(self._client, self._keys, self._clock)
        watches = [
            _again(f"requests for {name}", partial(pods.run, name)) for name in names.SIGNED_HERE
        ]
        return [pods.work(), *watches]

    def _secrets(self) -> list[Any]:
        nodes = NodeRequests(self._client, self._keys, self._clock)
        look = self._look_at_leaves
        return [
            nodes.work(),
            _again("agents' requests", nodes.run),
            _often("certificates in Secrets", self._leaves.reconcile, _LEAVES_SECONDS, look),
            self._watch(look, Pod, namespace="*", labels={POOL_LABEL: exists()}),
        ]

    def _watch(self, kick: asyncio.Event, kind: Any, **selection: Any) -> Any:
        async def watch() -> None:
            async for _ in changes(self._client, kind, **selection):
                kick.set()

        return _again(f"changes of {kind.__name__}", watch)

    async def _rotate_due(self) -> None:
        """By age, and on with whatever somebody began. The other two authorities are not ours."""
        for name in names.SIGNED_HERE:
            begin = await self._rotator.due(name)
            while (await self._rotator.advance(name, begin=begin)).action is not Action.NONE:
                begin = False
                self._look_at_trust.set()
                self._look_at_leaves.set()

    async def _own(self) -> None:
        file = self._settings.own_credential or Path()
        authority = await self._keys.current(names.POD_IDENTITY)
        want = pod_want(spiffe.CONTROLLER_ID)
        if await asyncio.to_thread(credential.ensure, file, want, authority, now=self._clock()):
            _log.info("our own certificate is new", extra={"file": str(file)})


async def _often(
    what: str,
    look: Callable[[], Awaitable[Any]],
    seconds: float,
    kick: asyncio.Event | None = None,
) -> None:
    kick = kick or asyncio.Event()

    async def round_after_round() -> None:
        while True:
            kick.clear()
            await look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await kick.wait()

    await _again(what, round_after_round)


async def _again(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """For ever; after a failure a little later each time, as long as failures follow each other."""
    loop, backoff = asyncio.get_running_loop(), Backoff(_FIRST_RETRY)
    while True:
        began = loop.time()
        problem = "it ended"
        try:
            await run()
        except (AteError, *UNREACHABLE) as error:
            problem = str(error)
        if loop.time() - began > backoff.longest:
            backoff.reset()
        wait = backoff.wait()
        extra = {"error": problem, "retry_s": round(wait, 2)}
        _log.warning("%s: again soon", what, extra=extra)
        await asyncio.sleep(wait)
