"""What every operation of the node's agent works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from atenet.atelet.files import ActorFiles
from atenet.atelet.golden import GoldenImages
from atenet.atelet.local import LocalSnapshots
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
    # The start that waits for its worker, by actor; the actor's lock is held meanwhile.
    starting: dict[str, atelet_pb2.ActorHandle] = field(default_factory=dict)
