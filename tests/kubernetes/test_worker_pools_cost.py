"""What a change costs is counted, not timed: requests, which must not grow with how much there is."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from atenet.controller.running import WorkerPools

from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster
from tests.support.pool_stage import PoolStage, pool_stage

_NEVER = 3600.0


@dataclass
class Requests:
    """What the controller asked of the API server, by method and resource."""

    seen: Counter[str] = field(default_factory=Counter)

    async def note(self, request: httpx2.Request) -> None:
        parts = request.url.path.split("/")
        resource = parts[parts.index("namespaces") + 2] if "namespaces" in parts else parts[-1]
        if resource != "leases":  # by the clock, whatever there is
            watch = " watch" if "watch" in request.url.params else ""
            self.seen[f"{request.method} {resource}{watch}"] += 1


async def _quiet(pools: WorkerPools) -> None:
    """Until nobody has a turn, and what was written has come back."""
    calm = 0

    def still() -> bool:
        nonlocal calm
        calm = calm + 1 if pools.turns.idle and pools.departed.turns.idle else 0
        return calm > 25

    await eventually(still, 20)


async def _costs(stage: PoolStage, cluster: KubeCluster, others: int) -> dict[str, Counter[str]]:
    """Of each kind of change to one pool, beside so many others of three workers."""
    requests = Requests()
    client = cluster.async_client()
    client._client._client.event_hooks = {"request": [requests.note]}
    calls: Counter[str] = Counter()
    try:
        async with stage.controller(client=client, sweep_seconds=_NEVER) as pools:
            _count_calls(pools, calls)
            await asyncio.gather(
                *(stage.create(f"other-{number}", replicas=3) for number in range(others))
            )
            await stage.create(replicas=3)
            for name in ["pool", *(f"other-{number}" for number in range(others))]:
                await stage.settled(3, name)
            await stage.registered()
            found = {}
            for change, make, size in (
                ("one more", lambda: stage.change(replicas=4), 4),
                ("one less", lambda: stage.change(replicas=3), 3),
                ("another template", lambda: stage.change(slots=9), 3),
            ):
                await _quiet(pools)
                requests.seen.clear()
                calls.clear()
                await make()
                await stage.settled(size)
                await _quiet(pools)
                # How often it has to ask whether a worker has become empty is the clock's to say.
                looks = calls.pop("look", 0)
                assert looks <= 30, looks
                found[change] = requests.seen + calls
            return found
    finally:
        await client.close()


def _count_calls(pools: WorkerPools, calls: Counter[str]) -> None:
    """What is asked of the control plane: each worker that is looked at, and each change."""
    records = pools.look._records
    for name in ("drain", "undrain", "forget"):
        _counted(records, name, calls, name)
    _counted(records, "get", calls, "look")
    _counted(records, "all", calls, "list")


def _counted(records: object, name: str, calls: Counter[str], word: str) -> None:
    original = getattr(records, name)

    def counted(*args: object) -> object:
        calls[word] += 1
        return original(*args)

    setattr(records, name, counted)


async def test_a_change_of_one_pool_costs_the_same_beside_one_other_and_beside_fifteen(
    kube_with_pools: KubeCluster, tmp_path: Path
) -> None:
    found = []
    for others in (1, 15):
        root = tmp_path / str(others)
        root.mkdir()
        async with pool_stage(kube_with_pools, root) as stage:
            stage.beat_seconds = 1.0
            found.append(await _costs(stage, kube_with_pools, others))
    few, many = found
    for change in few:
        # How many looks there are, and so words of status, is a matter of which events come together.
        for costs in (few[change], many[change]):
            assert 0 < costs.pop("PATCH workerpools") <= 12
        assert many[change] == few[change]
    assert few == {
        "one more": {"POST pods": 1},
        "one less": {"PATCH pods": 1, "DELETE pods": 1, "drain": 1, "forget": 1},
        "another template": {
            "POST pods": 3,
            "PATCH pods": 3,
            "DELETE pods": 3,
            "drain": 3,
            "forget": 3,
        },
    }
