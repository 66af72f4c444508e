"""Strictness for every test: what goes wrong beside a test fails it."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet.ateapi.store.location import PostgresUrl, store_location
from atenet.ateapi.store.postgres.schema import migrate

from tests.support import control_plane
from tests.support.postgres import PostgresServer, postgres_server


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: they often wait. More of them take each other's time."""
    return min(8, len(os.sched_getaffinity(0)) + 1)


class _Faults(logging.Handler):
    """Collects what asyncio would only log: exceptions that nobody awaited or handled."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(logging.Formatter().format(record))


@pytest.fixture(autouse=True)
def unhandled_loop_exceptions_fail() -> Iterator[None]:
    faults = _Faults()
    logger = logging.getLogger("asyncio")
    logger.addHandler(faults)
    try:
        yield
    finally:
        logger.removeHandler(faults)
    if faults.seen:
        pytest.fail("unhandled on the event loop:\n" + "\n".join(faults.seen))


@pytest.fixture(scope="session")
def root() -> None:
    """For tests that bind low ports, make namespaces or mounts. They never skip silently."""
    if os.geteuid() != 0:
        pytest.fail(
            "this test needs root\nhint: run `make test` as root, or with sudo", pytrace=False
        )


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that tests share; each makes databases of its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new store of either engine, as `--store` names it. Not migrated yet."""
    if request.param == "sqlite":
        return str(tmp_path / "ate.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def on_each_store(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's control planes run on PostgreSQL, or on SQLite behind the engine's front."""
    location = store_location(store_url)
    if isinstance(location, PostgresUrl):
        migrate(location)
        chosen = control_plane.Defaults(store=store_url, front="auto")
    else:
        chosen = control_plane.Defaults(front="auto")
    monkeypatch.setattr(control_plane, "defaults", chosen)
