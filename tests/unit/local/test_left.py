"""What is looked for after a stop: a process that lives on in a mount namespace of its own, a mount, a cgroup."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from atenet.local.layout import Layout
from atenet.local.left import left_behind

from tests.support.eventually import eventually


def test_where_nothing_was_nothing_is_left(tmp_path: Path) -> None:
    assert left_behind(Layout(tmp_path / "home")) == []


@pytest.mark.usefixtures("root")
def test_a_mount_below_the_home_is_found(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    layout.home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", layout.home], check=True)
    try:
        (found,) = left_behind(layout)
        assert found.startswith("mount ")
    finally:
        subprocess.run(["umount", layout.home], check=True)
    assert left_behind(layout) == []


@pytest.mark.usefixtures("root")
async def test_an_actors_process_is_found_without_a_mark(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    layout.home.mkdir()
    script = f"mount -t tmpfs none {layout.home} && exec sleep 600"
    inside = await asyncio.create_subprocess_exec("unshare", "--mount", "sh", "-c", script)
    try:
        words = [f"process {inside.pid} of an actor"]
        await eventually(lambda: left_behind(layout) == words)
    finally:
        inside.kill()
        await inside.wait()
    assert left_behind(layout) == []


@pytest.mark.usefixtures("root")
def test_a_cgroup_is_found(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    trees = [t for t in (Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")) if t.is_dir()]
    group = trees[0] / "atenet" / f"{layout.net_family}1-x"
    group.mkdir(parents=True)
    try:
        assert left_behind(layout) == [f"cgroup {group}"]
    finally:
        group.rmdir()
    assert left_behind(layout) == []
