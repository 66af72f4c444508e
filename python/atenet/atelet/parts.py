"""What every operation of the node's agent works with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from atenet.atelet.files import ActorFiles
from atenet.atelet.golden import GoldenImages
from atenet.atelet.local import LocalSnapshots
from atenet.atelet.removals import Removals
from atenet.atelet.snapshot import SnapshotStore
from atenet.atelet.workers import Workers
from atenet.proto import atelet_pb2

__all__ = ["Parts"]


@dataclass
class Parts:
    """`gateway`: where actors' egress gateway is, host:port; None: they reach nothing."""

    files: ActorFiles
    snapshots: SnapshotStore
    local: LocalSnapshots
    golden: GoldenImages
    workers: Workers
    gateway: str | None = None
    removals: Removals = field(default_factory=Removals)
    # The start that waits for its worker, by actor; the actor's lock is held meanwhile.
    starting: dict[str, atelet_pb2.ActorHandle] = field(default_factory=dict)

    async def discard(self, uid: str) -> None:
        """Nothing of the actor but its logs is here any more. Raises OSError."""
        self.removals.add(await asyncio.to_thread(self.files.put_aside, uid))

    async def drop_memory(self, uid: str) -> None:
        self.removals.add(await asyncio.to_thread(self.files.drop_memory, uid))
