"""What the supervisor asks of atunnel, and the engine's tunnel in that shape."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from atenet._engine import EngineError, Tunnel
from atenet.errors import AteError
from atenet.identity.spiffe import ROUTER_ID
from atenet.worker.network import ACTOR_ADDRESS

__all__ = ["Activity", "Incarnation", "Ingress", "TunnelIngress", "tunnel_config"]


_T = TypeVar("_T")


@dataclass(frozen=True)
class Incarnation:
    """One life of a named actor."""

    atespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.atespace}/{self.name}"


@dataclass(frozen=True)
class Activity:
    """`busy`: a request is in flight; else `idle_ms` since the last one ended, or since ingress
    was opened."""

    uid: str
    busy: bool
    idle_ms: int


class Ingress(Protocol):
    async def activate(self, actor: Incarnation, gateway: Path) -> None:
        """Opens ingress, dialling from the gateway namespace. Raises AteError."""

    async def deactivate(self, actor: Incarnation, grace: float) -> None:
        """Returns when no tunnel of this incarnation is left. Repeatable."""

    async def close_if_idle(self, actor: Incarnation, seconds: float) -> bool:
        """Closes ingress to new tunnels if no request is in flight and none was for so long; false,
        and nothing changed, otherwise. In one step: no request comes in between."""

    async def activity(self) -> list[Activity]:
        """Of every incarnation whose ingress is open."""


class TunnelIngress:
    """`threads`: the engine's calls wait on them; one per actor that closes at the same time."""

    def __init__(self, tunnel: Tunnel, threads: Executor) -> None:
        self._tunnel = tunnel
        self._threads = threads

    async def activate(self, actor: Incarnation, gateway: Path) -> None:
        def call() -> None:
            self._tunnel.activate(
                actor.atespace,
                actor.name,
                actor.uid,
                netns=os.fspath(gateway),
                address=ACTOR_ADDRESS,
            )

        await self._on_thread(call)

    async def deactivate(self, actor: Incarnation, grace: float) -> None:
        def call() -> None:
            self._tunnel.deactivate(actor.atespace, actor.name, actor.uid, grace_seconds=grace)

        await self._on_thread(call)

    async def close_if_idle(self, actor: Incarnation, seconds: float) -> bool:
        def call() -> bool:
            return self._tunnel.close_if_idle(
                actor.atespace, actor.name, actor.uid, idle_seconds=seconds
            )

        return await self._on_thread(call)

    async def activity(self) -> list[Activity]:
        stats = json.loads(await self._on_thread(self._tunnel.stats))
        return [
            Activity(found["uid"], found["in_flight"] > 0, found["idle_ms"])
            for found in stats["actors"]
            if found["open"]
        ]

    async def close(self, timeout: float) -> None:
        await self._on_thread(lambda: self._tunnel.close(timeout))

    async def _on_thread(self, call: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except (ValueError, EngineError) as e:
            raise AteError(f"atunnel: {e}") from e


def tunnel_config(listen: str, credential: Path, trust: Path) -> str:
    """The engine's configuration of atunnel, as JSON."""
    return json.dumps(
        {
            "listen": listen,
            "credentials": {"cert": os.fspath(credential), "key": os.fspath(credential)},
            "trust_bundle": os.fspath(trust),
            "allowed_client": ROUTER_ID,
        }
    )
