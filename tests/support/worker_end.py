"""A worker: the real atunnel, with actors on loopback addresses.

The actors' network namespace is the test's own: an actor is a listener on an address of its own.
"""

import asyncio
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet import _engine

from tests.support.addresses import candidates
from tests.support.pki import ROUTER_ID, Pki

HOST_NETNS = "/proc/self/ns/net"
CONNECT_PORT = 8443


@dataclass(frozen=True)
class Activation:
    """One incarnation of an actor on a worker."""

    actor: str
    uid: str

    @property
    def halves(self) -> tuple[str, str]:
        atespace, name = self.actor.split("/")
        return atespace, name


class WorkerEnd:
    """The real worker's end of the tunnels."""

    def __init__(self, tunnel: _engine.Tunnel, ip: str) -> None:
        self._tunnel = tunnel
        self.ip = ip

    @classmethod
    async def start(
        cls, pki: Pki, *, credential: Path | None = None, ip: str | None = None
    ) -> "WorkerEnd":
        """Serves on port 8443 of this address, or of a loopback address of its own."""
        clash: Exception | None = None
        for each in candidates() if ip is None else [ip]:
            tunnel = _engine.Tunnel(json.dumps(_config(pki, each, credential or pki.worker)))
            try:
                await asyncio.to_thread(tunnel.start)
            except _engine.EngineError as error:
                clash = error
                continue
            return cls(tunnel, each)
        raise RuntimeError("atunnel found no address to serve on") from clash

    def activate(self, actor: str, address: str, *, uid: str | None = None) -> Activation:
        """Opens ingress for an actor that listens on `address`."""
        activation = Activation(actor, uid or str(uuid.uuid4()))
        atespace, name = activation.halves
        self._tunnel.activate(atespace, name, activation.uid, netns=HOST_NETNS, address=address)
        return activation

    async def deactivate(self, activation: Activation, *, grace: float = 0.0) -> bool:
        """Closes ingress as a suspend does; returns when no tunnel of this incarnation is left."""
        atespace, name = activation.halves
        return await asyncio.to_thread(
            self._tunnel.deactivate, atespace, name, activation.uid, grace_seconds=grace
        )

    def stats(self) -> dict[str, Any]:
        counted: dict[str, Any] = json.loads(self._tunnel.stats())
        return counted

    async def close(self) -> None:
        await asyncio.to_thread(self._tunnel.close, 0.0)


def _config(pki: Pki, ip: str, credential: Path) -> dict[str, Any]:
    return {
        "listen": f"{ip}:{CONNECT_PORT}",
        "credentials": {"cert": str(credential), "key": str(credential)},
        "trust_bundle": str(pki.pod_roots),
        "allowed_client": ROUTER_ID,
    }
