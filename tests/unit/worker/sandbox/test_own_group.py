import logging
from pathlib import Path

import pytest
from atenet.worker.sandbox import Cgroups, Limits, own_group

OWN = "kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope"
LIMITS = Limits(memory_bytes=64 << 20)


def node(root: Path) -> Path:
    """Version 2 as a privileged container sees it: all of the node's groups, its own among them."""
    for group in (root, root / OWN):
        group.mkdir(parents=True)
        (group / "cgroup.controllers").write_text("cpu memory pids")
        (group / "cgroup.subtree_control").touch()
    (root / OWN / "cgroup.procs").write_text("7\n")
    return root


def member_of(path: str, file: Path) -> Path:
    file.write_text(f"0::{path}\n")
    return file


def test_groups_are_made_below_the_workers_own(tmp_path: Path) -> None:
    root = node(tmp_path / "cg")
    own = own_group(root, member_of(f"/{OWN}", tmp_path / "membership"))
    Cgroups("p-", own).create("p-1", LIMITS)
    assert (root / OWN / "atenet/p-1/memory.max").read_text() == str(64 << 20)
    assert not (root / "atenet").exists()
    assert (root / "cgroup.subtree_control").read_text() == ""


def test_its_processes_make_room_first(tmp_path: Path) -> None:
    root = node(tmp_path / "cg")
    own = own_group(root, member_of(f"/{OWN}", tmp_path / "membership"))
    assert (own / "atenet-worker/cgroup.procs").read_text() == "7"
    assert (own / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"


def test_started_again_it_finds_the_same(tmp_path: Path) -> None:
    root = node(tmp_path / "cg")
    again = member_of(f"/{OWN}/atenet-worker", tmp_path / "membership")
    assert own_group(root, again) == root / OWN


def test_with_a_cgroup_namespace_the_own_group_is_the_root(tmp_path: Path) -> None:
    root = node(tmp_path / "cg") / OWN
    assert own_group(root, member_of("/", tmp_path / "membership")) == root


def test_version_one_shows_a_container_its_own_alone(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    assert own_group(tmp_path, member_of("/", tmp_path / "membership")) == tmp_path


def test_a_group_that_cannot_be_divided_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = node(tmp_path / "cg")
    (root / OWN / "cgroup.procs").unlink()
    with caplog.at_level(logging.WARNING):
        own_group(root, member_of(f"/{OWN}", tmp_path / "membership"))
    assert "cannot be divided" in caplog.text
