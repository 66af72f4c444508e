from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from atenet.worker.sandbox import Cgroups, Limits, LimitsUnavailableError

LIMITS = Limits(cpu_milli=1500, memory_bytes=64 << 20)


def version_one(root: Path) -> Path:
    for kind in ("memory", "cpu", "pids"):
        (root / kind).mkdir(parents=True)
        (root / kind / "cgroup.procs").touch()
    return root


def version_two(root: Path) -> Path:
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu memory pids")
    (root / "cgroup.subtree_control").touch()
    return root


def test_version_one_has_a_group_per_controller(tmp_path: Path) -> None:
    root = version_one(tmp_path / "cg")
    groups = Cgroups("p-", root)
    groups.create("p-1", LIMITS)
    groups.admit("p-1", 42, LIMITS)
    assert (root / "memory/atenet/p-1/memory.limit_in_bytes").read_text() == str(64 << 20)
    assert (root / "cpu/atenet/p-1/cpu.cfs_quota_us").read_text() == "150000"
    assert (root / "cpu/atenet/p-1/cpu.cfs_period_us").read_text() == "100000"
    assert (root / "pids/atenet/p-1/pids.max").read_text() == "4096"
    for kind in ("memory", "cpu", "pids"):
        assert (root / kind / "atenet/p-1/cgroup.procs").read_text() == "42"


def test_version_two_has_one_group(tmp_path: Path) -> None:
    root = version_two(tmp_path / "cg")
    groups = Cgroups("p-", root)
    groups.create("p-1", LIMITS)
    groups.admit("p-1", 42, LIMITS)
    group = root / "atenet/p-1"
    assert (group / "memory.max").read_text() == str(64 << 20)
    assert (group / "memory.swap.max").read_text() == "0"
    assert (group / "cpu.max").read_text() == "150000 100000"
    assert (group / "cgroup.procs").read_text() == "42"
    assert (root / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"


def test_without_limits_no_group_is_made(tmp_path: Path) -> None:
    root = version_two(tmp_path / "cg")
    groups = Cgroups("p-", root)
    groups.create("p-1", Limits())
    groups.admit("p-1", 42, Limits())
    assert not (root / "atenet/p-1").exists()


def test_a_tiny_quota_is_what_the_kernel_takes(tmp_path: Path) -> None:
    root = version_two(tmp_path / "cg")
    Cgroups("p-", root).create("p-1", Limits(cpu_milli=1))
    assert (root / "atenet/p-1/cpu.max").read_text() == "1000 100000"


def test_limits_where_there_are_no_cgroups_are_refused(tmp_path: Path) -> None:
    groups = Cgroups("p-", tmp_path / "nothing")
    groups.create("p-1", Limits())
    with pytest.raises(LimitsUnavailableError, match=r"template.resources cannot be enforced"):
        groups.create("p-1", LIMITS)


def test_the_real_ones_are_made_and_removed(prefix: str) -> None:
    groups = Cgroups(prefix)
    groups.create(f"{prefix}1", LIMITS)
    made = list(Path("/sys/fs/cgroup").glob(f"**/atenet/{prefix}1"))
    assert made
    groups.remove(f"{prefix}1")
    groups.remove(f"{prefix}1")
    assert not any(path.exists() for path in made)


def test_clear_removes_this_workers_groups_only(prefix: str) -> None:
    mine, other = Cgroups(f"{prefix}a-"), Cgroups(f"{prefix}b-")
    mine.create(f"{prefix}a-1", LIMITS)
    other.create(f"{prefix}b-1", LIMITS)
    mine.clear()
    left = {path.name for path in Path("/sys/fs/cgroup").glob(f"**/atenet/{prefix}*")}
    other.clear()
    assert left == {f"{prefix}b-1"}


def test_workers_that_come_and_go_at_once_do_not_trip_over_each_other(prefix: str) -> None:
    # The parent is shared: whoever ends last removes it, while another is about to use it.
    def live(worker: int) -> None:
        for _ in range(40):
            groups = Cgroups(f"{prefix}{worker}-")
            groups.create(f"{prefix}{worker}-1", LIMITS)
            groups.clear()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(live, range(4)))
