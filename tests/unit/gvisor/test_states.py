"""What lasts as long as a sandbox is kept in memory, where the machine has a place for that."""

from __future__ import annotations

from pathlib import Path

import pytest
from atenet.gvisor.states import states

ROOT = "/dev/vda / ext4 rw 0 0"
RUN = "tmpfs /run tmpfs rw,nosuid,nodev 0 0"
SHM = "shm /dev/shm tmpfs rw,nosuid,nodev,noexec 0 0"


@pytest.mark.parametrize(
    ("mounts", "place"),
    [
        ([ROOT, RUN, SHM], "/run/atenet"),
        ([ROOT, SHM], "/dev/shm/atenet"),
        ([ROOT, "/dev/vdb /run ext4 rw 0 0", SHM], "/dev/shm/atenet"),
        ([ROOT, "tmpfs /run/user tmpfs rw 0 0"], "/run/atenet"),
        ([], "/run/atenet"),
    ],
)
def test_the_first_place_in_memory(tmp_path: Path, mounts: list[str], place: str) -> None:
    table = tmp_path / "mounts"
    table.write_text("\n".join(mounts))
    assert states(table) == Path(place)


def test_without_a_table_of_mounts_it_is_where_such_things_belong(tmp_path: Path) -> None:
    assert states(tmp_path / "missing") == Path("/run/atenet")
