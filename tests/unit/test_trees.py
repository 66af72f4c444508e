"""Directories nested deeper than Python's own helpers can go."""

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet import trees
from atenet.atelet.files import ActorFiles
from atenet.atelet.snapshot import TooDeepError, archive, extract
from atenet.worker.sandbox.account import hand_over

from tests.support.deep_tree import DEEP, nested


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """Empty afterwards: pytest, which removes those of earlier runs, is one of Python's own helpers."""
    yield tmp_path
    for path in tmp_path.iterdir():
        trees.remove(path)


def _depth_of(top: Path) -> tuple[int, list[str]]:
    return max(((step.depth, step.others) for step in trees.walk(top)), key=lambda d: d[0])


def test_a_walk_follows_no_link_and_goes_by_name(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "b")
    seen = [(step.path, step.depth, step.others) for step in trees.walk(tmp_path)]
    assert seen == [("", 0, ["link"]), ("a", 1, ["file"]), ("b", 1, []), ("b/c", 2, [])]


def test_a_directory_that_is_moved_under_a_walk_leads_nowhere_else(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    (top / "a" / "b").mkdir(parents=True)
    outside.mkdir()
    steps = trees.walk(top)
    assert [next(steps).path for _ in range(3)][-1] == "a/b"
    (top / "a" / "b").rename(outside / "b")
    with pytest.raises(OSError, match="was moved"):
        next(steps)


def test_removing_is_quiet_about_what_is_not_there_and_loud_about_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.remove(tmp_path / "nothing")
    (tmp_path / "-rf").mkdir()
    monkeypatch.chdir(tmp_path)
    trees.remove(Path("-rf"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="removing uptime"):
        trees.remove(Path("/proc/uptime"))
    trees.remove_quietly(Path("/proc/uptime"))


def test_deep_directories_are_stored_and_come_back(tmp_path: Path) -> None:
    top, again = tmp_path / "top", tmp_path / "again"
    top.mkdir()
    again.mkdir()
    nested(top)
    written = io.BytesIO()
    archive.write(top, written)
    written.seek(0)
    descriptor = os.open(again, os.O_RDONLY)
    extract.read(written, descriptor)
    os.close(descriptor)
    assert _depth_of(again) == (DEEP, ["bottom"])
    trees.remove(top)
    assert not top.exists()


def test_what_is_deeper_than_can_be_stored_is_an_oserror(tmp_path: Path) -> None:
    nested(tmp_path, 2001)
    with pytest.raises(TooDeepError, match="nested more than 2000 deep"):
        archive.write(tmp_path, io.BytesIO())


def test_deep_directories_are_handed_over(root: None, tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    nested(top)
    hand_over(top, 0x6000_0001)
    for step in trees.walk(top):
        assert os.fstat(step.descriptor).st_uid == 0x6000_0001


def test_deep_directories_are_discarded(tmp_path: Path) -> None:
    files = ActorFiles(tmp_path / "actors")
    directory = files.prepare("uid-1", ["data"])
    nested(directory / "volumes" / "data")
    files.discard("uid-1")
    assert sorted(path.name for path in directory.iterdir()) == ["logs"]


def test_an_old_actors_deep_directories_are_forgotten(tmp_path: Path) -> None:
    files = ActorFiles(tmp_path / "actors")
    directory = files.prepare("uid-1", ["data"])
    nested(directory / "volumes" / "data")
    # As an agent leaves it that was killed while it discarded them.
    (directory / "volumes").rename(directory / "volumes.doomed")
    files.forget_old_logs(now=time.time() + 8 * 24 * 3600)
    assert not directory.exists()
