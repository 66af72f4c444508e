"""The freezer against the kernel: both versions of cgroups, and processes that multiply meanwhile."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from atenet.worker.sandbox import Freezer, FreezeUnavailableError
from atenet.worker.sandbox.freezer import thaw_group_of

from tests.support.actor_box import new_prefix

_REAL = Path("/sys/fs/cgroup")


def _version_two() -> Path:
    """Where version 2 is mounted: alone, or beside version 1."""
    return _REAL if (_REAL / "cgroup.controllers").exists() else _REAL / "unified"


@pytest.fixture(params=["first of all", "version 2", "version 1"])
def freezer(request: pytest.FixtureRequest, tmp_path: Path, root: None) -> Iterator[Freezer]:
    """The kernel's groups as they would be found where only that version is mounted."""
    place = tmp_path / "cgroup"
    if request.param == "version 2":
        place = _version_two()
    elif request.param == "version 1" and (_REAL / "freezer").is_dir():
        place.mkdir()
        (place / "freezer").symlink_to(_REAL / "freezer")
    else:
        # A kernel without version 1 has only one way to do it.
        place = _REAL
    made = Freezer(new_prefix(), place)
    yield made
    made.clear()


# Counts on stdout; with an argument it starts children all the time, which start more.
COUNTING = """
import os, sys, time
if len(sys.argv) > 1:
    while True:
        if os.fork() == 0:
            time.sleep(0.05)
            os._exit(0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except ChildProcessError:
            pass
        time.sleep(0.001)
n = 0
while True:
    n += 1
    os.write(1, b".")
    time.sleep(0.002)
"""


class Counter:
    def __init__(self, out: Path, *arguments: str) -> None:
        self.out = out
        with out.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COUNTING, *arguments], stdout=file, start_new_session=True
            )

    def family(self) -> list[int]:
        """Every process of its session that still runs."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                except OSError:
                    continue
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def count(self) -> int:
        return self.out.stat().st_size


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Callable[..., Counter]]:
    made: list[Counter] = []

    def start(*arguments: str) -> Counter:
        made.append(Counter(tmp_path / f"out-{len(made)}", *arguments))
        return made[-1]

    yield start
    for one in made:
        for pid in one.family():
            thaw_group_of(pid)
        one.process.kill()
        one.process.wait()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def _goes_on(witness: Counter) -> None:
    """Returns when this one has counted enough for another to have done so as well."""
    wanted = witness.count() + 30
    _until(lambda: witness.count() >= wanted)


def test_what_is_frozen_stands_still_and_goes_on_when_thawed(
    freezer: Freezer, counter: Callable[..., Counter]
) -> None:
    one, witness = counter(), counter()
    _until(lambda: one.count() > 0)
    name = f"{freezer._prefix}a"
    freezer.freeze(name, one.family)
    stands = one.count()
    _goes_on(witness)
    assert one.count() == stands
    freezer.freeze(name, one.family)
    freezer.thaw(name)
    _until(lambda: one.count() > stands)
    freezer.thaw(name)


def test_processes_that_multiply_are_all_caught(
    freezer: Freezer, counter: Callable[..., Counter]
) -> None:
    one, witness = counter("multiply"), counter()
    _until(lambda: len(one.family()) > 3)
    name = f"{freezer._prefix}a"
    freezer.freeze(name, one.family)
    caught = sorted(one.family())
    _goes_on(witness)
    assert sorted(one.family()) == caught, "nobody was born, nobody has ended"
    freezer.thaw(name)


def test_one_that_is_killed_while_frozen_dies(
    freezer: Freezer, counter: Callable[..., Counter]
) -> None:
    one = counter()
    freezer.freeze(f"{freezer._prefix}a", one.family)
    one.process.kill()
    thaw_group_of(one.process.pid)
    one.process.wait(timeout=5)


def test_what_an_interrupted_run_left_is_thawed_and_removed(
    freezer: Freezer, counter: Callable[..., Counter]
) -> None:
    one = counter()
    name = f"{freezer._prefix}a"
    freezer.freeze(name, one.family)
    one.process.kill()
    freezer.clear()
    one.process.wait(timeout=5)
    assert not freezer._group(name).exists()


def test_without_a_freezer_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(FreezeUnavailableError, match="no cgroup freezer is mounted"):
        Freezer("p-", tmp_path).freeze("p-1", list)


def test_a_freezer_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "atenet").write_text("in the way")
    with pytest.raises(FreezeUnavailableError, match="cannot be frozen on this node"):
        Freezer("p-", tmp_path).check("p-1")


async def test_other_groups_are_left_alone(freezer: Freezer) -> None:
    other = Freezer(new_prefix(), freezer._hierarchy and _root_of(freezer))
    other.check(f"{other._prefix}a")
    await asyncio.to_thread(freezer.clear)
    assert other._group(f"{other._prefix}a").exists()
    other.clear()


def _root_of(freezer: Freezer) -> Path:
    place = freezer._hierarchy
    assert place is not None
    return place if (place / "cgroup.controllers").exists() else place.parent
