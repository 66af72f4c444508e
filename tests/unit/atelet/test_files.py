import os
import stat
import time
from pathlib import Path

import pytest
from atenet.atelet.files import ActorFiles
from atenet.errors import AteError


@pytest.fixture
def files(tmp_path: Path) -> ActorFiles:
    return ActorFiles(tmp_path / "actors")


def test_directories_are_made_for_the_owner_alone(files: ActorFiles) -> None:
    directory = files.prepare("uid-1", ["data", "cache"])
    assert files.volumes("uid-1") == {
        "cache": directory / "volumes/cache",
        "data": directory / "volumes/data",
    }
    for path in (directory, directory / "volumes", directory / "volumes/data", directory / "logs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_what_is_there_is_left(files: ActorFiles) -> None:
    directory = files.prepare("uid-1", ["data"])
    (directory / "volumes/data/file").touch()
    files.prepare("uid-1", ["data", "more"])
    assert (directory / "volumes/data/file").exists()


def test_discard_removes_volumes_and_keeps_logs(files: ActorFiles) -> None:
    directory = files.prepare("uid-1", ["data"])
    (directory / "logs/main.log").write_text("why")
    files.discard("uid-1")
    files.discard("uid-1")
    assert files.volumes("uid-1") is None
    assert (directory / "logs/main.log").read_text() == "why"
    assert sorted(path.name for path in directory.iterdir()) == ["logs"]


def test_what_an_interrupted_discard_left_is_never_taken_for_volumes(files: ActorFiles) -> None:
    directory = files.prepare("uid-1", ["data"])
    (doomed,) = files.put_aside("uid-1")
    assert doomed.parent == directory
    assert files.volumes("uid-1") is None
    files.prepare("uid-1", ["data"])
    files.discard("uid-1")
    assert sorted(path.name for path in directory.iterdir()) == ["logs"]


def test_discard_does_not_follow_links(files: ActorFiles, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").touch()
    directory = files.prepare("uid-1", ["data"])
    (directory / "volumes/data/link").symlink_to(tmp_path / "outside")
    files.discard("uid-1")
    assert (tmp_path / "outside/file").exists()


@pytest.mark.parametrize("uid", ["", ".", "..", "../x", "a/b", "-x", "x" * 65, "a\0"])
def test_what_is_no_uid_is_refused(files: ActorFiles, uid: str) -> None:
    with pytest.raises(AteError, match="actor_uid"):
        files.directory(uid)


@pytest.mark.parametrize("name", ["..", "a/b", "", "UP", "volumes.doomed"])
def test_what_is_no_volumes_name_is_refused(files: ActorFiles, name: str) -> None:
    with pytest.raises(AteError, match=r"template.volumes name"):
        files.prepare("uid-1", [name])


def test_old_logs_of_actors_that_left_are_forgotten(files: ActorFiles, tmp_path: Path) -> None:
    for uid in ("left-long-ago", "left-just-now", "here"):
        directory = files.prepare(uid, ["data"])
        (directory / "logs/main.log").touch()
        if uid != "here":
            files.discard(uid)
    long_ago = time.time() - 8 * 24 * 3600
    for uid in ("left-long-ago", "here"):
        os.utime(tmp_path / "actors" / uid / "logs/main.log", (long_ago, long_ago))
    files.forget_old_logs()
    left = sorted(path.name for path in (tmp_path / "actors").iterdir())
    assert left == ["here", "left-just-now"]
