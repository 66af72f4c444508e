"""What is PostgreSQL's own: schema, leases, restarts, and passwords that stay unsaid."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from importlib import resources
from pathlib import Path

import psycopg
import pytest
from atenet.ateapi.main import main
from atenet.ateapi.store import BusyError, HeldError, Transaction
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.store.location import PostgresUrl, store_location
from atenet.ateapi.store.migrations import numbered
from atenet.ateapi.store.news import News, Topic
from atenet.ateapi.store.opening import migrate_store
from atenet.ateapi.store.postgres import PostgresStore
from atenet.ateapi.store.postgres.schema import _LOCK, migrate
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb
from click.testing import CliRunner

from tests.support.control_plane import control_plane
from tests.support.eventually import eventually
from tests.support.postgres import PASSWORD, PostgresServer, postgres_server
from tests.support.stores import new_actor, new_worker

_LEASE = 1.0


@pytest.fixture
def url(postgres: PostgresServer) -> PostgresUrl:
    made = PostgresUrl(postgres.database())
    migrate(made)
    return made


@contextlib.asynccontextmanager
async def _replica(url: PostgresUrl, lease_seconds: float = _LEASE) -> AsyncIterator[PostgresStore]:
    made = await PostgresStore.open(url, lease_seconds)
    try:
        yield made
    finally:
        await made.close()


# ---------------------------------------------------------------- schema


async def test_migrating_by_many_at_once_and_again_does_it_once(postgres: PostgresServer) -> None:
    url = PostgresUrl(postgres.database())
    newest = len(numbered("atenet.ateapi.store.postgres"))
    done = await asyncio.gather(*(migrate_store(url) for _ in range(5)))
    assert sorted(done) == [(0, newest), *[(newest, newest)] * 4]
    assert await migrate_store(url) == (newest, newest)


async def test_a_migration_waits_its_turn_for_as_long_as_it_takes(
    postgres: PostgresServer,
) -> None:
    url = PostgresUrl(f"{postgres.database()}&options=-c%20statement_timeout%3D50ms")
    with psycopg.connect(url.text) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        waiting = asyncio.ensure_future(migrate_store(url))
        await asyncio.wait([waiting], timeout=0.3)
        assert not waiting.done()
    assert (await waiting)[0] == 0


async def test_a_database_that_is_not_migrated_is_refused(postgres: PostgresServer) -> None:
    with pytest.raises(AteError, match="is empty") as caught:
        await PostgresStore.open(PostgresUrl(postgres.database()))
    assert "ateapi migrate" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("version", "said"), [(999, "has schema 999; this program knows up to"), (-1, "needs")]
)
async def test_another_schema_is_refused(url: PostgresUrl, version: int, said: str) -> None:
    with psycopg.connect(url.text) as connection:
        connection.execute("DELETE FROM atenet_schema")
        connection.execute("INSERT INTO atenet_schema VALUES (%s)", (version,))
    with pytest.raises(AteError, match=said):
        await PostgresStore.open(url)


async def test_a_newer_schema_is_not_migrated(url: PostgresUrl) -> None:
    with psycopg.connect(url.text) as connection:
        connection.execute("INSERT INTO atenet_schema VALUES (999)")
    with pytest.raises(AteError, match="schema 999"):
        await migrate_store(url)


async def test_somebody_else_s_tables_are_left_alone(postgres: PostgresServer) -> None:
    url = PostgresUrl(postgres.database())
    with psycopg.connect(url.text) as connection:
        connection.execute("CREATE TABLE workers (theirs TEXT)")
    with pytest.raises(AteError, match="cannot be migrated"):
        await migrate_store(url)
    with psycopg.connect(url.text) as connection:
        row = connection.execute("SELECT to_regclass('actors'), to_regclass('workers')").fetchone()
    assert row == (None, "workers")


def test_both_engines_have_the_same_migrations_under_numbers_of_their_own() -> None:
    store = resources.files("atenet.ateapi.store")
    names = [
        sorted(file.name for file in (store / engine / "migrations").iterdir())
        for engine in ("sqlite", "postgres")
    ]
    assert names[0] == names[1]
    assert [int(name[:4]) for name in names[0]] == list(range(1, len(names[0]) + 1))


def test_the_command_migrates_and_says_so(postgres: PostgresServer) -> None:
    url = postgres.database()
    first = CliRunner().invoke(main, ["migrate", "--store", url])
    again = CliRunner().invoke(main, ["migrate", "--store", url])
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert "now at schema" in first.output
    assert "already" in again.output
    assert PASSWORD not in first.output + again.output


# ---------------------------------------------------------------- passwords


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ate:{}@127.0.0.1:1/ate",
        "postgresql://ate@127.0.0.1:1/ate?password={}",
        "postgresql://ate:{}%zz@127.0.0.1/ate",
        "postgresql://ate:{}@127.0.0.1/ate?no_such=1",
        "postgresql://ate:{}@[::1/ate",
        "mysql://ate:{}@127.0.0.1/ate",
    ],
)
def test_a_password_is_never_said(url: str) -> None:
    done = CliRunner().invoke(main, ["migrate", "--store", url.format("s3cr3t")])
    assert done.exit_code in (1, 2)
    assert "store" in done.output
    assert "s3cr3t" not in done.output


def test_a_url_may_be_in_a_file_so_that_no_command_line_has_its_password(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    file.write_text(f"{postgres.database()}\n")
    done = CliRunner().invoke(main, ["migrate", "--store", f"@{file}"])
    assert done.exit_code == 0, done.output
    assert PASSWORD not in done.output


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot read"), ("", "is empty"), ("mysql://ate:s3cr3t@h/d", "cannot be a mysql://")],
)
def test_a_file_that_holds_no_store_is_named_and_not_repeated(
    content: str | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_text(content)
    with pytest.raises(AteError, match=said) as caught:
        store_location(f"@{file}")
    assert "s3cr3t" not in str(caught.value)


async def test_a_wrong_password_is_not_repeated(postgres: PostgresServer) -> None:
    url = store_location(postgres.url().replace(PASSWORD, "s3cr3t"))
    with pytest.raises(AteError, match="password authentication failed") as caught:
        await migrate_store(url)
    assert "s3cr3t" not in f"{caught.value} {url} {url!r}"


async def test_serving_an_unmigrated_database_ends_with_what_to_do_and_no_password(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with control_plane(tmp_path, store=postgres.database()) as plane:
        with pytest.raises(AssertionError):  # it ended before it was ready
            async with plane.in_its_own_process():
                pass
        said = plane.log()
        assert "is empty" in said
        assert "hint: run `ateapi migrate --store" in said
        assert PASSWORD not in said
        await migrate_store(store_location(plane.store))
        async with plane.in_its_own_process():
            await plane.seed("a")
        assert PASSWORD not in plane.log()


# ---------------------------------------------------------------- leases


async def _freeze(store: PostgresStore) -> None:
    """As if its process stood still: the lease ends, the operation does not know."""
    keeping = store._lease._keeping
    assert keeping is not None
    keeping.cancel()


async def _taken_over(store: PostgresStore, uid: str) -> bool:
    try:
        async with store.hold(uid):
            return True
    except HeldError:
        return False


@pytest.mark.conformance("C-02")
async def test_a_dead_replica_s_operation_is_taken_over_and_its_late_write_refused(
    url: PostgresUrl,
) -> None:
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="late"))
    async with _replica(url) as one, _replica(url) as two:
        async with one.hold("u1"):
            assert not await _taken_over(two, "u1")
            await _freeze(one)
            await eventually(lambda: _taken_over(two, "u1"))
            with pytest.raises(HeldError):
                await one.write(lambda tx: tx.atespaces.put(space))
        assert await two.read(lambda tx: tx.atespaces.get("late")) is None


async def test_a_write_needs_every_actor_that_is_held_for_it(url: PostgresUrl) -> None:
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="late"))
    async with _replica(url) as one, _replica(url) as two, one.hold("heir"):
        await _freeze(one)
        await eventually(lambda: _taken_over(two, "heir"))
        async with one.hold("victim"):
            with pytest.raises(HeldError):
                await one.write(lambda tx: tx.atespaces.put(space))
        with pytest.raises(HeldError):
            await one.write(lambda tx: tx.atespaces.put(space))


async def test_a_lease_that_is_renewed_is_not_taken_over(url: PostgresUrl) -> None:
    async with _replica(url, 2.0) as one, _replica(url) as two, one.hold("u1"):
        with pytest.raises(TimeoutError):
            await eventually(lambda: _taken_over(two, "u1"), seconds=3.0)


async def test_a_caller_that_leaves_while_the_lock_is_taken_leaves_no_lock(
    url: PostgresUrl,
) -> None:
    async with _replica(url) as one, _replica(url) as two:
        taking = asyncio.ensure_future(one.hold("u1").__aenter__())
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await eventually(lambda: _taken_over(two, "u1"))


# ---------------------------------------------------------------- claims


@pytest.mark.conformance("C-04")
async def test_a_claim_goes_past_a_worker_that_another_claim_has(url: PostgresUrl) -> None:
    """SKIP LOCKED: a slow claim on one worker does not hold up the next, which finds another."""
    async with _replica(url) as one, _replica(url) as two:
        for name in ("w1", "w2"):
            worker = new_worker(name, slots=5)
            await one.write(lambda tx, w=worker: tx.workers.put(w, heartbeat_at=1, lost=False))
        with psycopg.connect(url.text) as other:
            other.execute("SELECT 1 FROM workers WHERE name = 'w1' FOR UPDATE")
            assert await two.write(_claim_first("u1")) == "w2"


def _claim_first(uid: str):
    def change(tx: Transaction) -> str | None:
        row = next(iter(tx.workers.with_room(0)), None)
        if row is None:
            return None
        tx.workers.claim(ClaimRow(uid, row.worker.metadata.name, row.worker.epoch))
        return row.worker.metadata.name

    return change


@pytest.mark.conformance("C-04")
async def test_claims_of_two_replicas_never_exceed_the_slots(url: PostgresUrl) -> None:
    async with _replica(url) as one, _replica(url) as two:
        for name in ("w1", "w2", "w3"):
            worker = new_worker(name, slots=5)
            await one.write(lambda tx, w=worker: tx.workers.put(w, heartbeat_at=1, lost=False))
        got = await asyncio.gather(
            *((one, two)[n % 2].write(_claim_first(f"u{n}")) for n in range(60))
        )
        assert sorted(n for n in got if n) == ["w1"] * 5 + ["w2"] * 5 + ["w3"] * 5
        rows = await one.read(lambda tx: tx.workers.page("", 9))
        assert [row.allocated for row in rows] == [5, 5, 5]


async def test_the_same_record_made_twice_at_once_is_made_once(url: PostgresUrl) -> None:
    async with _replica(url) as one, _replica(url) as two:

        def create(tx: Transaction) -> bool:
            if tx.actors.get("team-a", "a"):
                return False
            tx.actors.put(new_actor("a"))
            return True

        made = await asyncio.gather(*(s.write(create) for s in (one, two) * 5))
        assert sum(made) == 1


# ---------------------------------------------------------------- news of the others


async def test_what_one_replica_frees_the_others_know_at_once(url: PostgresUrl) -> None:
    async with _replica(url) as one, _replica(url) as two:
        told: list[News] = []
        two.subscribe(told.append)
        await one.write(lambda tx: tx.workers.put(new_worker(), heartbeat_at=1, lost=False))
        await one.write(_claim_first("u1"))
        await one.write(lambda tx: tx.workers.release("u1"))
        worker, room = News(Topic.WORKER, "w"), News(Topic.CAPACITY, "w")
        await eventually(lambda: told == [worker, room, room])


async def test_a_replica_knows_whether_others_live(url: PostgresUrl) -> None:
    async with _replica(url) as one:
        assert await one.alone()
        async with _replica(url) as two:
            assert not await one.alone()
            await _freeze(two)
            await eventually(one.alone)


# ---------------------------------------------------------------- the server's life


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


async def test_a_server_that_restarts_is_used_again(own_server: PostgresServer) -> None:
    url = PostgresUrl(own_server.database())
    await migrate_store(url)
    space = pb.Atespace(metadata=pb.ResourceMetadata(name="a"))
    async with _replica(url) as store:
        async with store.hold("u1"):
            await store.write(lambda tx: tx.atespaces.put(space))
            own_server.stop(signal.SIGQUIT)
            with pytest.raises(BusyError):
                await store.read(lambda tx: tx.atespaces.get("a"))
            with pytest.raises(BusyError):
                await store.write(lambda tx: tx.atespaces.put(space))
        own_server.start()
        assert await store.read(lambda tx: tx.atespaces.get("a")) == space
        async with _replica(url) as other:
            await eventually(lambda: _taken_over(other, "u1"))
        told: list[News] = []
        store.subscribe(told.append)
        own_server.stop()
        own_server.start()
        await store.write(lambda tx: tx.atespaces.put(space))
        await eventually(lambda: News(Topic.ANYTHING) in told)
        assert await store.read(lambda tx: tx.atespaces.get("a")) == space
