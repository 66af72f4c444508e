"""What the supervisor asks of atunnel, and the engine's tunnel in that shape."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from atenet._engine import EngineError, Tunnel
from atenet.errors import AteError
from atenet.identity.spiffe import ROUTER_ID
from atenet.worker.network import ACTOR_ADDRESS

__all__ = ["Incarnation", "Ingress", "TunnelIngress", "tunnel_config"]


@dataclass(frozen=True)
class Incarnation:
    """One life of a named actor."""

    atespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.atespace}/{self.name}"


class Ingress(Protocol):
    async def activate(self, actor: Incarnation, gateway: Path) -> None:
        """Opens ingress, dialling from the gateway namespace. Raises AteError."""

    async def deactivate(self, actor: Incarnation, grace: float) -> None:
        """Returns when no tunnel of this incarnation is left. Repeatable."""


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

    async def close(self, timeout: float) -> None:
        await self._on_thread(lambda: self._tunnel.close(timeout))

    async def _on_thread(self, call: Callable[[], None]) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, call)
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
