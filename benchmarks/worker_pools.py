"""How long worker pools take to settle after a change, and what that costs, with little and with much else there.

`python -m benchmarks.worker_pools` (some minutes). A real API server and a real control plane; nodes and workers are
played (tests/support/pool_stage.py). First 20 worker pods of 4 pools with 1 000 running actors, then 200 of 40 pools
with 10 000; the same changes to one pool in each, and one to all pools at once. What it saw goes to
results/worker_pools.json: seconds until the pool's status says that it is as wanted, and the controller's requests to
the API server meanwhile. It fails when a change of one pool costs more requests with ten times as much there.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from atenet.ateapi import records
from atenet.ateapi.store import Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.store.sqlite import SqliteStore
from atenet.controller.definition import crd
from atenet.proto import ateapi_pb2 as pb

from benchmarks.machine import machine, versions
from benchmarks.result import RESULTS
from tests.support.control_plane import actor
from tests.support.kube_cluster import KubeCluster, kube_cluster
from tests.support.pool_stage import PoolStage, pool_stage

_WORKERS, _SLOTS = 5, 50
_SIZES = {"little": 4, "much": 40}
# Status is written as often as events arrive apart.
_ROOM = 1.5


async def _actors(stage: PoolStage) -> int:
    """Every slot has a running one, as if it had been resumed there; how many there are."""
    await stage.control.seed()
    workers = await stage.registered()
    hosted = stage.control.atelet.hosted
    made: list[tuple[pb.Actor, pb.Worker]] = []
    for worker in workers.values():
        for _ in range(_SLOTS):
            running = actor(f"a{len(made)}")
            records.created(running.metadata, time.time())
            running.status.state = pb.ACTOR_STATE_RUNNING
            running.status.assigned_node = worker.node_name
            running.status.worker_assignment.CopyFrom(records.assignment_for(worker))
            hosted[worker.metadata.name].add(running.metadata.uid)
            made.append((running, worker))

    def change(tx: Transaction) -> None:
        for running, worker in made:
            tx.actors.put(running)
            name, epoch = worker.metadata.name, worker.epoch
            tx.workers.claim(ClaimRow(running.metadata.uid, name, epoch, 0, 0, None))

    store = await SqliteStore.open(Path(stage.control.settings().store))
    try:
        await store.write(change)
    finally:
        await store.close()
    return len(made)


async def _changes(cluster: KubeCluster, root: Path, pools: int) -> dict[str, Any]:
    """Each change: seconds, and requests."""
    requests: Counter[str] = Counter()

    async def note(request: httpx2.Request) -> None:
        if "leases" not in request.url.path:
            requests[request.method] += 1

    client = cluster.async_client()
    client._client._client.event_hooks = {"request": [note]}
    names = [f"pool-{number}" for number in range(pools)]
    found: dict[str, Any] = {}

    async with pool_stage(cluster, root, worker_timeout=300.0, node_timeout=600.0) as stage:
        stage.slots, stage.beat_seconds = _SLOTS, 2.0
        async with stage.controller(client=client):

            async def measured(
                what: str, change: Callable[[], Awaitable[Any]], sizes: dict[str, int]
            ) -> None:
                requests.clear()
                began = time.monotonic()
                await change()
                for name, size in sizes.items():
                    await stage.settled(size, name, seconds=300)
                seconds = round(time.monotonic() - began, 2)
                found[what] = {"seconds": seconds, "requests": requests.total()}
                print(
                    f"    {pools} pools: {what}: {seconds} s, {requests.total()} requests",
                    flush=True,
                )

            everything = dict.fromkeys(names, _WORKERS)
            await measured(
                "all pools made",
                lambda: asyncio.gather(*(stage.create(n, replicas=_WORKERS) for n in names)),
                everything,
            )
            found["actors"] = await _actors(stage)
            print(f"    {pools} pools: {found['actors']} actors run", flush=True)
            one = names[0]
            await measured("one worker more", lambda: stage.change(one, replicas=6), {one: 6})
            await measured("one worker less", lambda: stage.change(one, replicas=5), {one: 5})
            await measured(
                "five workers replaced, 250 actors moved",
                lambda: stage.change(one, labels={"wave": "2"}),
                {one: 5},
            )
            await measured(
                "one worker more in every pool",
                lambda: asyncio.gather(*(stage.change(n, replicas=6) for n in names)),
                dict.fromkeys(names, 6),
            )
    await client.close()
    return found


async def _take() -> dict[str, Any]:
    found = {}
    for size, pools in _SIZES.items():
        with (
            kube_cluster() as cluster,
            tempfile.TemporaryDirectory(prefix="ate-bench-") as directory,
        ):
            await asyncio.to_thread(cluster.define, crd())
            found[size] = await _changes(cluster, Path(directory), pools)
    return found


def _dearer(found: dict[str, Any]) -> list[str]:
    """Changes of one pool that cost more where there is more."""
    return [
        what
        for what, little in found["little"].items()
        if isinstance(little, dict)
        and what.startswith(("one worker more", "one worker less", "five"))
        and not what.endswith("every pool")
        and found["much"][what]["requests"] > _ROOM * little["requests"]
    ]


def main() -> int:
    found = asyncio.run(_take())
    content = {
        "what": "worker pools: seconds until settled and requests, by change",
        "set_up": {"workers_a_pool": _WORKERS, "slots": _SLOTS, "pools": _SIZES},
        "runs": found,
        "command": "python -m benchmarks.worker_pools",
        "versions": versions(),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    path = RESULTS / "worker_pools.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    if dearer := _dearer(found):
        print(f"error: these cost more where there is more: {', '.join(dearer)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
