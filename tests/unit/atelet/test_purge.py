"""A node's directories, emptied: all that is in them, and nothing that is not."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet import trees
from atenet.atelet.purge import PurgeSettings, purge, serve
from atenet.errors import AteError

from tests.support.eventually import eventually


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Path]:
    """As actors leave it: files of other accounts, closed directories, links that lead out, a deep nest."""
    directory = tmp_path / "lib" / "ate"
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    closed = directory / "actors" / "a" / "rootfs"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    os.chown(closed / "file", 40001, 40001)
    closed.chmod(0)
    (directory / "out").symlink_to(tmp_path / "precious")
    (directory / "actors" / "out").symlink_to(tmp_path / "precious" / "file")
    (directory / ".hidden").write_text("x")
    deep = directory / "deep"
    deep.mkdir()
    subprocess.run(
        ["sh", "-c", "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d; i=$((i+1)); done"],
        cwd=deep,
        check=True,
    )
    yield directory
    trees.remove(directory)  # deeper than pytest can remove


def test_everything_in_it_goes_and_what_links_lead_to_stays(node: Path, tmp_path: Path) -> None:
    assert purge(node) == 4
    assert list(node.iterdir()) == []
    assert (tmp_path / "precious" / "file").read_text() == "kept"
    assert purge(node) == 0


@pytest.fixture
def mounted(node: Path, root: None) -> Iterator[Path]:
    inside = node / "actors" / "a disk"
    inside.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "mine", inside], check=True)
    (inside / "file").write_text("kept")
    yield inside
    subprocess.run(["umount", inside], check=True)


def test_where_something_is_mounted_inside_nothing_is_removed(node: Path, mounted: Path) -> None:
    before = sorted(node.iterdir())
    with pytest.raises(AteError, match=f"{mounted} is mounted in it; nothing was removed"):
        purge(node)
    assert sorted(node.iterdir()) == before
    assert (mounted / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "said"), [("nothing", "is no directory"), ("link", "is no directory"), ("/", "root")]
)
def test_what_is_no_directory_of_a_node_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    with pytest.raises(AteError, match=f"--directory .*{said}"):
        purge(tmp_path / name)


async def test_it_says_so_once_all_are_empty_and_waits_to_be_told(
    node: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "atelet.sock").write_text("")
    done, stop = tmp_path / "purged", asyncio.Event()
    settings = PurgeSettings(directory=(node, tmp_path / "run"), ready_file=done)
    task = asyncio.create_task(serve(settings, stop))
    await eventually(done.exists)
    assert [list(each.iterdir()) for each in settings.directory] == [[], []]
    assert not task.done()
    stop.set()
    await task


async def test_it_never_says_so_where_something_stays(
    node: Path, mounted: Path, tmp_path: Path
) -> None:
    done = tmp_path / "purged"
    with pytest.raises(AteError, match="is mounted in it"):
        await serve(PurgeSettings(directory=(node,), ready_file=done), asyncio.Event())
    assert not done.exists()
