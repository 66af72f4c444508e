"""Archives that nobody honest made."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from atenet.atelet.snapshot import extract


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    info.mode = 0o644
    return info


def made(*members: tarfile.TarInfo, content: bytes = b"") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info in members:
            info.size = len(content) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(content))
    return target.getvalue()


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], Path]:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("untouched")

    def unpack(content: bytes) -> Path:
        top = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
        try:
            extract.read(io.BytesIO(content), top)
        finally:
            os.close(top)
        return inside

    return unpack


@pytest.mark.parametrize("name", ["../outside/new", "/tmp/new", "a/../../outside/new", ".."])
def test_a_name_that_leads_out_is_refused(
    read: Callable[[bytes], Path], tmp_path: Path, name: str
) -> None:
    with pytest.raises(extract.UnsafeArchiveError, match="leads out"):
        read(made(member(name)))
    assert names(tmp_path / "outside") == ["file"]


@pytest.mark.parametrize("target", ["../outside", "/tmp", "/"])
def test_a_link_is_never_walked_through(
    read: Callable[[bytes], Path], tmp_path: Path, target: str
) -> None:
    content = made(member("way", tarfile.SYMTYPE, target), member("way/new"), content=b"x")
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        read(content)
    assert names(tmp_path / "outside") == ["file"]


def test_a_link_is_never_written_through(read: Callable[[bytes], Path], tmp_path: Path) -> None:
    content = made(
        member("file", tarfile.SYMTYPE, "../outside/file"), member("file"), content=b"overwritten"
    )
    with pytest.raises(FileExistsError):
        read(content)
    assert (tmp_path / "outside" / "file").read_text() == "untouched"


@pytest.mark.parametrize("target", ["../outside/file", "/etc/passwd", "."])
def test_a_hard_link_to_the_outside_is_refused(read: Callable[[bytes], Path], target: str) -> None:
    with pytest.raises(extract.UnsafeArchiveError):
        read(made(member("mine", tarfile.LNKTYPE, target)))


def test_a_hard_link_through_a_link_is_refused(
    read: Callable[[bytes], Path], tmp_path: Path
) -> None:
    content = made(
        member("way", tarfile.SYMTYPE, "../outside"), member("mine", tarfile.LNKTYPE, "way/file")
    )
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        read(content)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_devices_are_refused(read: Callable[[bytes], Path], kind: bytes) -> None:
    with pytest.raises(extract.UnsafeArchiveError, match="type"):
        read(made(member("device", kind)))


def test_an_archive_that_ends_early_is_an_error(read: Callable[[bytes], Path]) -> None:
    content = made(member("file"), content=b"x" * 100_000)
    with pytest.raises((tarfile.TarError, extract.UnsafeArchiveError, EOFError)):
        read(content[:50_000])
