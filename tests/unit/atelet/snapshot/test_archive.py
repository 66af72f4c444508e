"""Archives, there and back: what is stored is what comes out, and GNU tar can read it too."""

import io
import os
import random
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from atenet.atelet.snapshot import archive, extract
from hypothesis import given, settings
from hypothesis import strategies as st


def packed(directory: Path) -> bytes:
    target = io.BytesIO()
    archive.write(directory, target)
    return target.getvalue()


def unpacked(content: bytes, target: Path) -> Path:
    target.mkdir()
    top = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        extract.read(io.BytesIO(content), top)
    finally:
        os.close(top)
    return target


def described(top: Path) -> dict[str, tuple]:
    """Everything that must survive, by relative path."""
    found = {}
    for base, directories, files in os.walk(top):
        for name in [".", *directories, *files]:
            path = Path(base) / name
            s = path.lstat()
            content: object = None
            if stat.S_ISLNK(s.st_mode):
                content = path.readlink()
            elif stat.S_ISREG(s.st_mode):
                content = path.read_bytes()
            # A link's own mode means nothing; times are kept to the microsecond.
            mode = None if stat.S_ISLNK(s.st_mode) else s.st_mode
            found[str(path.relative_to(top))] = (mode, round(s.st_mtime, 5), content)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "data"
    (top / "deep" / "er").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "file").write_bytes(b"content")
    (top / "deep" / "er" / "binary").write_bytes(random.Random(1).randbytes(300_000))
    (top / "zero").touch()
    return top


def test_files_directories_modes_and_times_come_back(tree: Path, tmp_path: Path) -> None:
    (tree / "file").chmod(0o640)
    (tree / "script").write_text("#!/bin/sh\n")
    (tree / "script").chmod(0o4755)
    (tree / "deep").chmod(0o500)
    os.utime(tree / "file", (1_000_000_000.25, 1_000_000_000.25))
    os.utime(tree / "deep", (1_100_000_000, 1_100_000_000))
    tree.chmod(0o2750)
    assert described(unpacked(packed(tree), tmp_path / "back")) == described(tree)


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "ünïcode",
        "new\nline",
        "-dash",
        "x" * 255,
        b"\xff\xfe".decode("utf-8", "surrogateescape"),
        "a\\b",
        "'q'",
    ],
)
def test_any_name_comes_back(tmp_path: Path, name: str) -> None:
    top = tmp_path / "data"
    (top / name).mkdir(parents=True)
    (top / name / name).write_bytes(b"here")
    (top / "link").symlink_to(name)
    assert described(unpacked(packed(top), tmp_path / "back")) == described(top)


def test_links_stay_links_wherever_they_lead(tree: Path, tmp_path: Path) -> None:
    (tree / "absolute").symlink_to("/etc/passwd")
    (tree / "up").symlink_to("../../..")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "to-directory").symlink_to("deep")
    (tree / "loop").symlink_to("loop")
    back = unpacked(packed(tree), tmp_path / "back")
    for name in ("absolute", "up", "dangling", "to-directory", "loop"):
        assert (back / name).readlink() == (tree / name).readlink()
    assert b"root:" not in packed(tree)


def test_hard_links_share_one_file_again(tree: Path, tmp_path: Path) -> None:
    os.link(tree / "file", tree / "deep" / "same")
    back = unpacked(packed(tree), tmp_path / "back")
    assert (back / "file").stat().st_ino == (back / "deep" / "same").stat().st_ino
    assert (back / "file").read_bytes() == b"content"


def test_a_pipe_comes_back_and_a_socket_is_left_out(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "pipe", 0o620)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree / "socket"))
        back = unpacked(packed(tree), tmp_path / "back")
    assert stat.S_ISFIFO((back / "pipe").stat().st_mode)
    assert not (back / "socket").exists()


def test_owners_are_normalised(root: None, tree: Path, tmp_path: Path) -> None:
    os.chown(tree / "file", 1610612737, 1610612737)
    back = unpacked(packed(tree), tmp_path / "back")
    assert (back / "file").stat().st_uid == os.getuid()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {0: b"start"},
        {5 << 20: b"end", 0: b"start"},
        {1 << 20: b"middle"},
        {n << 20: bytes([n]) * 70_000 for n in range(0, 40, 3)},
    ],
    ids=["all hole", "data first", "both ends", "middle", "many"],
)
def test_holes_stay_holes(tmp_path: Path, data: dict[int, bytes]) -> None:
    top = tmp_path / "data"
    top.mkdir()
    with (top / "sparse").open("wb") as file:
        for offset, content in data.items():
            file.seek(offset)
            file.write(content)
        file.truncate(64 << 20)
    content = packed(top)
    assert len(content) < 2 << 20
    back = unpacked(content, tmp_path / "back")
    assert (back / "sparse").stat().st_size == 64 << 20
    assert (back / "sparse").stat().st_blocks * 512 < 4 << 20
    assert (back / "sparse").read_bytes() == (top / "sparse").read_bytes()


def test_a_huge_sparse_file_costs_little(tmp_path: Path) -> None:
    top = tmp_path / "data"
    top.mkdir()
    with (top / "sparse").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 39)
        file.write(b"needle")
    content = packed(top)
    assert len(content) < 1 << 20
    back = unpacked(content, tmp_path / "back")
    with (back / "sparse").open("rb") as file:
        file.seek(1 << 39)
        assert file.read(6) == b"needle"
    assert (back / "sparse").stat().st_size == 1 << 40


def test_gnu_tar_reads_it(tree: Path, tmp_path: Path) -> None:
    with (tree / "sparse").open("wb") as file:
        file.seek(1 << 20)
        file.write(b"after the hole")
    (tree / "link").symlink_to("file")
    back = tmp_path / "back"
    back.mkdir()
    subprocess.run(["tar", "-xpf", "-", "-C", back], input=packed(tree), check=True)
    assert described(back) == described(tree)


NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40
).filter(lambda name: name not in (".", "..") and len(name.encode()) <= 255)
FILES = st.tuples(st.binary(max_size=2000), st.integers(0, 0o7777))
TREES = st.recursive(
    FILES | st.text(min_size=1, max_size=60).filter(lambda t: "\0" not in t and t.isascii()),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def grow(at: Path, shape: object) -> None:
    """A directory (dict), a file with its mode (tuple), or a link (text)."""
    if isinstance(shape, dict):
        at.mkdir()
        for name, inner in shape.items():
            grow(at / name, inner)
    elif isinstance(shape, tuple):
        at.write_bytes(shape[0])
        at.chmod(shape[1])
    else:
        at.symlink_to(str(shape))


@settings(max_examples=60, deadline=None)
@given(shape=st.dictionaries(NAMES, TREES, max_size=5))
def test_any_tree_comes_back(shape: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as here:
        grow(Path(here) / "data", shape)
        back = unpacked(packed(Path(here) / "data"), Path(here) / "back")
        assert described(back) == described(Path(here) / "data")
