"""What both stores promise: whole transactions, honest books, one operation an actor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from atenet.ateapi.store import BusyError, ContradictionError, HeldError, Store, Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.store.news import ActorNews, News, Topic
from atenet.proto import ateapi_pb2 as pb

from tests.support.eventually import eventually
from tests.support.stores import new_actor, new_worker, opened


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with opened(store_url) as made:
        yield made


async def test_a_failed_change_leaves_nothing(store: Store) -> None:
    def change(tx: Transaction) -> None:
        tx.atespaces.put(pb.Atespace(metadata=pb.ResourceMetadata(name="a")))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.write(change)
    assert await store.read(lambda tx: tx.atespaces.get("a")) is None


async def test_a_caller_that_leaves_does_not_stop_its_write(store: Store) -> None:
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="a"))
    writing = asyncio.ensure_future(store.write(lambda tx: tx.atespaces.put(space)))
    await asyncio.sleep(0)
    writing.cancel()

    async def written() -> bool:
        return await store.read(lambda tx: tx.atespaces.get("a")) == space

    await eventually(written)


async def test_reads_cannot_write(store: Store) -> None:
    with pytest.raises(BusyError, match=r"read-?only"):
        await store.read(lambda tx: tx.atespaces.delete("a"))


async def test_the_books_of_a_worker_are_its_claims(store: Store) -> None:
    def claim(tx: Transaction) -> None:
        tx.workers.put(new_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u2", "w", 1))

    await store.write(claim)
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert row.allocated == row.worker.status.allocated.actors == 2
    assert await store.read(lambda tx: list(tx.workers.with_room(0))) == []
    for _ in range(2):
        await store.write(lambda tx: tx.workers.release("u1"))
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert row.allocated == 1


async def test_the_books_hold_what_the_claims_ask_for(store: Store) -> None:
    def claim(tx: Transaction) -> None:
        tx.workers.put(new_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1, cpu_milli=500, memory_bytes=64))
        tx.workers.claim(ClaimRow("u2", "w", 1, cpu_milli=250))

    await store.write(claim)
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert (row.allocated_cpu, row.allocated_memory) == (750, 64)
    assert dict(row.worker.status.allocated.resources) == {"cpu_milli": 750, "memory_bytes": 64}
    for _ in range(2):
        await store.write(lambda tx: tx.workers.release("u1"))
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert (row.allocated, row.allocated_cpu, row.allocated_memory) == (1, 250, 0)


async def test_a_claim_never_exceeds_what_the_worker_has(store: Store) -> None:
    """Two that saw the same room: the row is what decides, not what was seen."""
    worker = new_worker(slots=9)
    worker.status.capacity.resources["memory_bytes"] = 100
    await store.write(lambda tx: tx.workers.put(worker, heartbeat_at=1, lost=False))

    def claim(tx: Transaction, uid: str) -> bool:
        for row in tx.workers.with_room(0):
            if row.allocated_memory + 60 <= 100:
                tx.workers.claim(ClaimRow(uid, "w", 1, memory_bytes=60))
                return True
        return False

    got = await asyncio.gather(
        *(store.write(lambda tx, uid=f"u{i}": claim(tx, uid)) for i in range(8))
    )
    assert sum(got) == 1


async def test_packing_lists_the_fullest_worker_with_room_first(store: Store) -> None:
    def fill(tx: Transaction) -> None:
        for name in ("empty", "full", "half"):
            tx.workers.put(new_worker(name), heartbeat_at=1, lost=False)
        for uid, name in (("u1", "half"), ("u2", "full"), ("u3", "full")):
            tx.workers.claim(ClaimRow(uid, name, 1))

    await store.write(fill)
    for pack, order in ((False, ["empty", "half"]), (True, ["half", "empty"])):
        rows = await store.read(lambda tx, pack=pack: list(tx.workers.with_room(0, pack=pack)))
        assert [r.worker.metadata.name for r in rows] == order


async def test_the_longest_idle_claims_come_first_and_only_those_that_can_be_asked(
    store: Store,
) -> None:
    claims = [
        *(
            ("new", "w", 2, 9.0),
            ("busy", "w", 2, None),
            ("old", "w", 2, 3.0),
            ("older", "w", 2, 2.0),
        ),
        *(("outlived", "w", 1, 1.0), ("l", "lost", 1, 1.0), ("s", "silent", 1, 1.0)),
        ("d", "draining", 1, 1.0),
    ]

    def claim(tx: Transaction, epoch: int) -> None:
        for uid, name, of, since in claims:
            if of == epoch:
                tx.workers.claim(ClaimRow(uid, name, of, idle_since=since))

    def fill(tx: Transaction) -> None:
        for name in ("w", "lost", "silent", "draining"):
            tx.workers.put(new_worker(name, slots=9), heartbeat_at=10, lost=False)
        claim(tx, 1)
        tx.workers.put(new_worker("w", slots=9, epoch=2), heartbeat_at=10, lost=False)
        claim(tx, 2)
        tx.workers.put(new_worker("lost"), heartbeat_at=10, lost=True)
        tx.workers.put(new_worker("silent"), heartbeat_at=1, lost=False)
        draining = new_worker("draining")
        draining.status.state = pb.WORKER_STATE_DRAINING
        tx.workers.put(draining, heartbeat_at=10, lost=False)

    await store.write(fill)
    found = await store.read(lambda tx: tx.workers.idlest(8.0, 5.0, 10))
    assert [c.actor_uid for c in found] == ["older", "old"]
    assert len(await store.read(lambda tx: tx.workers.idlest(8.0, 5.0, 1))) == 1
    rows = await store.read(lambda tx: tx.workers.draining())
    assert [r.worker.metadata.name for r in rows] == ["draining"]


async def test_idleness_is_noted_on_the_worker_that_reports_it(store: Store) -> None:
    def fill(tx: Transaction) -> None:
        tx.workers.put(new_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u2", "w", 1))
        tx.workers.idle("w", {"u1": 5.0, "nobody": 5.0})
        tx.workers.idle("elsewhere", {"u2": 5.0})

    await store.write(fill)
    assert await store.read(lambda tx: tx.workers.claim_of("nobody")) is None
    claim = await store.read(lambda tx: tx.workers.claim_of("u1"))
    assert claim is not None
    assert claim.idle_since == 5.0
    claim = await store.read(lambda tx: tx.workers.claim_of("u2"))
    assert claim is not None
    assert claim.idle_since is None
    await store.write(lambda tx: tx.workers.idle("w", {"u1": None}))
    claim = await store.read(lambda tx: tx.workers.claim_of("u1"))
    assert claim is not None
    assert claim.idle_since is None


async def test_registering_again_keeps_the_claims(store: Store) -> None:
    def change(tx: Transaction) -> None:
        tx.workers.put(new_worker(epoch=1), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.put(new_worker(epoch=2, slots=5), heartbeat_at=2, lost=False)

    await store.write(change)
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert (row.allocated, row.worker.epoch) == (1, 2)
    assert await store.read(lambda tx: tx.workers.outlived()) == [ClaimRow("u1", "w", 1)]


async def test_claims_of_an_earlier_epoch_are_found_until_all_are_settled(
    store: Store,
) -> None:
    def change(tx: Transaction) -> None:
        tx.workers.put(new_worker(epoch=1), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u2", "w", 1))
        tx.workers.put(new_worker(epoch=2, slots=9), heartbeat_at=2, lost=False)
        tx.workers.put(new_worker(epoch=2, slots=9), heartbeat_at=3, lost=False)
        tx.workers.claim(ClaimRow("u3", "w", 2))

    await store.write(change)
    for uid, left in (("u1", {"u2"}), ("u3", {"u2"}), ("u2", set())):
        await store.write(lambda tx, uid=uid: tx.workers.release(uid))
        found = await store.read(lambda tx: tx.workers.outlived())
        assert {c.actor_uid for c in found} == left


async def test_workers_with_room_come_with_the_largest_free_share_first(
    store: Store,
) -> None:
    def change(tx: Transaction) -> None:
        for name, slots, claims in (("a", 4, 2), ("b", 100, 10), ("c", 2, 2), ("d", 1, 0)):
            tx.workers.put(new_worker(name, slots), heartbeat_at=1, lost=False)
            for i in range(claims):
                tx.workers.claim(ClaimRow(f"{name}{i}", name, 1))

    await store.write(change)
    found = await store.read(lambda tx: list(tx.workers.with_room(0)))
    assert [row.worker.metadata.name for row in found] == ["d", "b", "a"]


async def test_an_actor_claims_once(store: Store) -> None:
    def twice(tx: Transaction) -> None:
        tx.workers.put(new_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.workers.claim(ClaimRow("u1", "w", 1))

    with pytest.raises(ContradictionError):
        await store.write(twice)


@pytest.mark.parametrize(
    ("heartbeat", "lost", "state", "room"),
    [
        (10, False, pb.WORKER_STATE_ACTIVE, True),
        (5, False, pb.WORKER_STATE_ACTIVE, False),
        (10, True, pb.WORKER_STATE_ACTIVE, False),
        (10, False, pb.WORKER_STATE_DRAINING, False),
    ],
)
async def test_only_live_active_workers_have_room(
    store: Store, heartbeat: float, lost: bool, state: pb.WorkerState, room: bool
) -> None:
    worker = new_worker()
    worker.status.state = state
    await store.write(lambda tx: tx.workers.put(worker, heartbeat_at=heartbeat, lost=lost))
    assert bool(await store.read(lambda tx: list(tx.workers.with_room(6)))) is room


async def test_states_in_motion_are_found(store: Store) -> None:
    def change(tx: Transaction) -> None:
        tx.actors.put(new_actor("a", pb.ACTOR_STATE_RESUMING))
        tx.actors.put(new_actor("b", pb.ACTOR_STATE_RUNNING))
        tx.actors.put(new_actor("c", pb.ACTOR_STATE_DELETING))

    await store.write(change)
    wanted = (pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_DELETING)
    found = await store.read(lambda tx: tx.actors.in_states(wanted, 10))
    assert {a.metadata.name for a in found} == {"a", "c"}


async def test_the_warm_read_sees_running_actors_only(store: Store) -> None:
    running = new_actor("a", pb.ACTOR_STATE_RUNNING)

    def change(tx: Transaction) -> None:
        tx.actors.put(running)
        tx.actors.put(new_actor("b"))

    await store.write(change)
    warm = await store.read(lambda tx: tx.actors.if_running("team-a", "a"))
    assert warm is not None
    assert pb.Actor.FromString(warm) == running
    assert await store.read(lambda tx: tx.actors.if_running("team-a", "b")) is None


async def test_what_was_written_is_read_after_a_restart(store_url: str) -> None:
    made = new_actor("a")
    async with opened(store_url) as first:
        await first.write(lambda tx: tx.actors.put(made))
    async with opened(store_url) as second:
        assert await second.read(lambda tx: tx.actors.get("team-a", "a")) == made


async def test_pages_are_in_the_order_of_bytes(store: Store) -> None:
    names = ["a", "a-b", "a0", "ab", "b"]

    def change(tx: Transaction) -> None:
        for name in reversed(names):
            tx.actors.put(new_actor(name))

    await store.write(change)
    first = await store.read(lambda tx: tx.actors.page("team-a", ("", ""), 2))
    rest = await store.read(lambda tx: tx.actors.page("", ("team-a", "a-b"), 9))
    assert [a.metadata.name for a in (*first, *rest)] == names


async def test_many_writes_at_once_all_count(store: Store) -> None:
    await store.write(lambda tx: tx.workers.put(new_worker(slots=40), heartbeat_at=1, lost=False))
    await asyncio.gather(
        *(
            store.write(lambda tx, n=n: tx.workers.claim(ClaimRow(f"u{n}", "w", 1)))
            for n in range(40)
        )
    )
    row = await store.read(lambda tx: tx.workers.get("w"))
    assert row is not None
    assert row.allocated == 40


async def test_what_is_being_used_is_not_deleted_meanwhile(store_url: str) -> None:
    """A template's last check and an actor's creation, by two control planes, end in one order."""
    async with opened(store_url) as one, opened(store_url) as two:
        for n in range(20):
            space = pb.Atespace(metadata=pb.ResourceMetadata(name=f"s{n}"))
            await one.write(lambda tx, s=space: tx.atespaces.put(s))
            made = new_actor("a")
            made.metadata.atespace = f"s{n}"

            def create(tx: Transaction, made: pb.Actor = made) -> bool:
                if tx.atespaces.get(made.metadata.atespace) is None:
                    return False
                tx.actors.put(made)
                return True

            def delete(tx: Transaction, name: str = f"s{n}") -> bool:
                if tx.atespaces.get(name) is None or tx.atespaces.in_use(name):
                    return False
                tx.atespaces.delete(name)
                return True

            created, deleted = await asyncio.gather(one.write(create), two.write(delete))
            assert created != deleted


async def test_an_operation_lock_is_exclusive_and_frees_itself(store: Store) -> None:
    async with store.hold("u1"):
        with pytest.raises(HeldError):
            async with store.hold("u1"):
                pass
        async with store.hold("u2"):
            pass
    async with store.hold("u1"):
        pass


async def test_an_operation_lock_holds_against_another_control_plane(
    store: Store, store_url: str
) -> None:
    async with opened(store_url) as other:
        for holder, late in ((store, other), (other, store)):
            async with holder.hold("u1"):
                with pytest.raises(HeldError):
                    async with late.hold("u1"):
                        pass


async def test_an_operation_may_write(store: Store) -> None:
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="a"))
    async with store.hold("u1"):
        await store.write(lambda tx: tx.atespaces.put(space))
    assert await store.read(lambda tx: tx.atespaces.get("a")) == space


async def test_what_a_write_changed_is_told_once_it_is_committed(store: Store) -> None:
    told: list[News] = []
    store.subscribe(told.append)

    def change(tx: Transaction) -> None:
        tx.workers.put(new_worker(), heartbeat_at=1, lost=False)
        tx.workers.claim(ClaimRow("u1", "w", 1))
        tx.actors.put(made)
        tx.policies.put(made.metadata.uid, pb.EgressPolicy())

    def undone(tx: Transaction) -> None:
        tx.workers.put(new_worker("other"), heartbeat_at=1, lost=False)
        raise ValueError("no")

    made = new_actor("a")
    with pytest.raises(ValueError, match="no"):
        await store.write(undone)
    await store.write(change)
    await store.write(lambda tx: tx.workers.release("u1"))
    await store.write(lambda tx: tx.workers.release("u1"))
    await store.write(lambda tx: tx.policies.delete(made.metadata.uid))
    wanted = [
        News(Topic.WORKER, "w"),
        News(Topic.CAPACITY, "w"),
        News(Topic.POLICY, made.metadata.uid),
        News(Topic.CAPACITY, "w"),
        News(Topic.POLICY, made.metadata.uid),
    ]
    await eventually(lambda: told == wanted)


async def test_nothing_is_told_to_whom_has_left(store: Store) -> None:
    told: list[News] = []
    kept: list[News] = []
    leave = store.subscribe(told.append)
    store.subscribe(kept.append)
    leave()
    await store.write(lambda tx: tx.workers.put(new_worker(), heartbeat_at=1, lost=False))
    await eventually(lambda: len(kept) == 2)
    assert told == []


async def test_an_actor_that_leaves_its_assignment_is_told_and_one_on_its_way_to_one_is_not(
    store: Store,
) -> None:
    told: list[News] = []
    store.subscribe(told.append)
    made = new_actor("a")
    wanted = []
    for version, state in (
        *((1, pb.ACTOR_STATE_SUSPENDED), (2, pb.ACTOR_STATE_RESUMING)),
        *((3, pb.ACTOR_STATE_RUNNING), (4, pb.ACTOR_STATE_SUSPENDING)),
        *((5, pb.ACTOR_STATE_SUSPENDED), (6, pb.ACTOR_STATE_PAUSED), (7, pb.ACTOR_STATE_DELETING)),
    ):
        made.metadata.version, made.status.state = version, state
        await store.write(lambda tx: tx.actors.put(made))
        if version > 3:
            wanted.append(ActorNews("team-a", "a", made.metadata.uid, version))
    await eventually(lambda: len(told) == len(wanted))
    assert [item.topic for item in told] == [Topic.ACTOR] * len(wanted)
    assert [ActorNews.parse(item.subject) for item in told] == wanted
