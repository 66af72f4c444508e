"""What every workflow works with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from atenet.ateapi import records
from atenet.ateapi.metrics import Metrics
from atenet.ateapi.nodes import Nodes
from atenet.ateapi.snapshots import SnapshotStore, Sweeper
from atenet.ateapi.store import Store, Transaction, WorkerRow
from atenet.ateapi.workflows import decide, rows
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Context"]

# How long a doubtful refusal waits for the registration that would explain it.
DOUBT_SECONDS = 2.0


@dataclass
class Context:
    """The edge of the workflows: store, nodes, clock, limits."""

    store: Store
    nodes: Nodes
    snapshots: SnapshotStore
    sweeper: Sweeper
    metrics: Metrics
    clock: records.Clock
    worker_timeout: float  # seconds without a heartbeat until a worker counts as lost
    node_timeout: float  # seconds without one until files on its node count as lost
    drain_wait: float = 60.0  # seconds that actors in use may stay on a draining worker
    pack: bool = False  # claims go to the fullest worker with room, not the emptiest
    registered: asyncio.Event = field(default_factory=asyncio.Event)  # pulsed by each registration
    # Template -> when it was last told that its actors find no room.
    shortages: dict[str, float] = field(default_factory=dict)

    @property
    def heard_after(self) -> float:
        return self.clock() - self.worker_timeout

    async def look(self, uid: str) -> tuple[pb.Actor | None, WorkerRow | None]:
        """The actor and the worker it is assigned to, as stored now.

        A PAUSED one's record names no worker; what is returned names that of the slot it holds.
        """

        def query(tx: Transaction) -> tuple[pb.Actor | None, WorkerRow | None]:
            actor = tx.actors.by_uid(uid)
            if actor is not None and actor.status.state == pb.ACTOR_STATE_PAUSED:
                rows.assign_as_claimed(tx, actor)
            name = actor.status.worker_assignment.worker.name if actor else ""
            return actor, tx.workers.get(name) if name else None

        return await self.store.read(query)

    async def node_endpoint(self, node: str) -> str | None:
        """Where the node's agent is; None when no worker was heard from there for so long that what is
        on the node counts as lost."""
        heard_after = self.clock() - self.node_timeout
        rows = await self.store.read(lambda tx: tx.workers.on_node(node))
        found = [row for row in rows if row.heartbeat_at > heard_after]
        newest = max(found, key=lambda row: row.heartbeat_at, default=None)
        return None if newest is None else newest.worker.node_endpoint

    def claim_good(self, actor: pb.Actor, row: WorkerRow | None) -> bool:
        return decide.claim_is_good(actor.status.worker_assignment, row, self.heard_after)

    def placeable(self, actor: pb.Actor, row: WorkerRow | None) -> bool:
        """The same, and the worker still takes starts."""
        return (
            row is not None
            and row.worker.status.state == pb.WORKER_STATE_ACTIVE
            and self.claim_good(actor, row)
        )

    async def claim_turns_bad(self, uid: str) -> bool:
        """Waits a moment for news of the worker. True once the claim's incarnation is gone."""
        deadline = asyncio.get_running_loop().time() + DOUBT_SECONDS
        while True:
            self.registered.clear()
            actor, row = await self.look(uid)
            if actor is None or not self.claim_good(actor, row):
                return True
            remaining = deadline - asyncio.get_running_loop().time()
            if remaining <= 0:
                return False
            try:
                async with asyncio.timeout(remaining):
                    await self.registered.wait()
            except TimeoutError:
                continue
