"""The engine's egress end in the shape that the worker asks for."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from atenet._engine import Capture, EngineError
from atenet.errors import AteError
from atenet.proto import ateapi_pb2
from atenet.worker.egress.certificate import TunnelCertificate
from atenet.worker.ingress import Incarnation

__all__ = ["CaptureEnd", "EngineCapture"]

_T = TypeVar("_T")


class CaptureEnd(Protocol):
    async def open(self, actor: Incarnation, gateway_namespace: Path, gateway: str | None) -> None:
        """Binds the capture port and the relay; nothing leaves yet. Raises AteError."""

    def set_certificate(self, uid: str, certificate: TunnelCertificate) -> None: ...

    def drop_certificate(self, uid: str) -> None:
        """Refuses new connections; those that run go on."""

    async def set_policy(self, uid: str, policy: ateapi_pb2.EgressPolicy) -> None:
        """Which names the relay answers."""

    def confirm_policy(self, uid: str) -> None:
        """The policy that was set is still what there is."""

    async def close_actor(self, uid: str) -> None:
        """Returns when nothing of it is left. Repeatable."""


class EngineCapture:
    """`threads`: the engine's calls wait on them. Raises AteError for unusable files."""

    def __init__(self, config: dict[str, Any], threads: Executor) -> None:
        try:
            self._engine = Capture(json.dumps(config))
        except (ValueError, EngineError) as e:
            raise AteError(f"capture: {e}", hint="see --egress-gateway-trust and --dns-…") from e
        self._threads = threads

    async def open(self, actor: Incarnation, gateway_namespace: Path, gateway: str | None) -> None:
        await self._on_thread(
            lambda: self._engine.open(
                actor.atespace,
                actor.name,
                actor.uid,
                netns=os.fspath(gateway_namespace),
                gateway=gateway,
            )
        )

    def set_certificate(self, uid: str, certificate: TunnelCertificate) -> None:
        chain, ends = list(certificate.chain), certificate.not_after.timestamp()
        _told(
            lambda: self._engine.set_credential(
                uid, chain=chain, key=certificate.key, not_after=ends
            )
        )

    def drop_certificate(self, uid: str) -> None:
        _told(lambda: self._engine.drop_credential(uid))

    async def set_policy(self, uid: str, policy: ateapi_pb2.EgressPolicy) -> None:
        content = policy.SerializeToString()
        await self._on_thread(lambda: self._engine.set_policy(uid, content))

    def confirm_policy(self, uid: str) -> None:
        _told(lambda: self._engine.confirm_policy(uid))

    async def close_actor(self, uid: str) -> None:
        await self._on_thread(lambda: self._engine.close_actor(uid))

    def denials(self, actor: str) -> str:
        """JSON, see `Router.denials`. Raises ValueError for what is no actor's name."""
        return self._engine.denials(actor)

    def metrics(self) -> str:
        """Prometheus text."""
        return self._engine.metrics()

    async def close(self) -> None:
        await self._on_thread(self._engine.close)

    async def _on_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, _told, call)


def _told(call: Callable[[], _T]) -> _T:
    try:
        return call()
    except (ValueError, EngineError) as e:
        raise AteError(f"capture: {e}") from e
