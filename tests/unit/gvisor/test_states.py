"""What lasts as long as a sandbox is kept in memory, where the machine has a place for that."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from atenet.errors import AteError
from atenet.gvisor.states import make_owned, owned, states
from atenet.local import sweep
from atenet.worker.sandbox.gvisor import runsc, sandbox
from atenet.worker.sandbox.gvisor.sandbox import GvisorSandbox

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


def of_another(place: Path) -> None:
    place.mkdir()
    os.chown(place, 65534, 65534)


def open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)


def open_to_a_group(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)


def a_link(place: Path) -> None:
    target = place.with_name("elsewhere")
    target.mkdir(mode=0o700)
    place.symlink_to(target)


def a_broken_link(place: Path) -> None:
    place.symlink_to(place.with_name("nowhere"))


def a_file(place: Path) -> None:
    place.write_text("")


PREPARED = [of_another, open_to_all, open_to_a_group, a_link, a_broken_link, a_file]


@pytest.fixture(params=PREPARED)
def prepared(request: pytest.FixtureRequest, tmp_path: Path, root: None) -> Path:
    """What another user of the machine may have put there before the first worker: everybody may write there."""
    prepare: Callable[[Path], None] = request.param
    prepare(tmp_path / "atenet")
    return tmp_path / "atenet"


def test_it_is_made_for_us_alone_and_found_again(tmp_path: Path) -> None:
    place = tmp_path / "shm" / "atenet"
    assert not owned(place)
    for _ in range(2):
        make_owned(place)
        assert owned(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_what_somebody_else_prepared_is_refused_with_what_to_do(prepared: Path) -> None:
    assert not owned(prepared)
    with pytest.raises(AteError, match="only we can change") as caught:
        make_owned(prepared)
    assert f"ls -ld {prepared}" in (caught.value.hint or "")
    assert not prepared.with_name("nowhere").exists()


def test_no_worker_starts_on_it(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "STATES", prepared)
    nothing = cast("Any", None)
    with pytest.raises(AteError, match="only we can change"):
        GvisorSandbox(Path("/nonexistent/runsc"), "p-", nothing, nothing, disk=nothing)


@pytest.mark.parametrize("prepare", [of_another, open_to_all, a_link])
def test_nothing_in_it_is_removed_or_taken_for_ours(
    prepare: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: None
) -> None:
    place = tmp_path / "atenet"
    prepare(place)
    kept = place / "p-1" / "file"
    kept.parent.mkdir()
    kept.write_text("x")
    monkeypatch.setattr(runsc, "STATES", place)
    monkeypatch.setattr(sweep, "STATES", place)
    runsc.clear_states("p-")
    assert kept.exists()
    assert sweep.find_sandboxes("p-") == []
