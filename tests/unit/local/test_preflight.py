"""What must be true before anything is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.local.layout import Layout
from atenet.local.preflight import check_machine, prepare_home, search_path


def test_a_new_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "new" / "home")
    prepare_home(layout)
    for directory in layout.directories():
        assert directory.stat().st_mode & 0o777 == 0o700, directory
    prepare_home(layout)  # again at no harm


def test_a_file_where_a_directory_belongs_is_named(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    layout.home.mkdir()
    layout.logs.write_text("what is this")
    with pytest.raises(AteError, match=r"damaged.*logs") as caught:
        prepare_home(layout)
    assert caught.value.hint


def test_a_home_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AteError, match="file"):
        prepare_home(Layout(tmp_path / "file" / "home"))


def test_a_home_that_others_may_write_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    layout.home.mkdir()
    layout.home.chmod(0o777)
    with pytest.raises(AteError, match="writable by others") as caught:
        prepare_home(layout)
    assert "chmod" in str(caught.value.hint)


@pytest.mark.parametrize("store", [None, b""])
def test_a_store_that_is_lost_while_actors_sleep_is_not_replaced_by_a_new_one(
    tmp_path: Path, store: bytes | None
) -> None:
    layout = Layout(tmp_path / "home")
    prepare_home(layout)
    if store is not None:
        layout.store.write_bytes(store)
    (layout.snapshots / "demo").mkdir()
    with pytest.raises(AteError, match=r"ate\.db is missing or empty") as caught:
        prepare_home(layout)
    assert "backup" in str(caught.value.hint)
    # What was committed last may be in the log beside it alone.
    layout.store.with_name("ate.db-wal").write_bytes(b"pages")
    prepare_home(layout)


@pytest.mark.usefixtures("root")
def test_a_home_of_someone_else_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    layout.home.mkdir()
    os.chown(layout.home, 12345, 12345)
    with pytest.raises(AteError, match="belongs to uid 12345"):
        prepare_home(layout)


# B153
@pytest.mark.parametrize(("command", "package"), [("bwrap", "bubblewrap"), ("nft", "nftables")])
def test_a_missing_command_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, package: str
) -> None:
    for other in {"bwrap", "nft"} - {command}:
        (tmp_path / other).touch(0o755)
    monkeypatch.setattr("atenet.local.preflight.search_path", lambda: str(tmp_path))
    with pytest.raises(AteError, match=command) as caught:
        check_machine()
    assert caught.value.hint == f"apt-get install {package}"


@pytest.mark.usefixtures("root")
def test_without_capabilities_it_says_which_and_what_to_do() -> None:
    code = (
        "from atenet.local.preflight import check_machine\n"
        "try: check_machine()\n"
        "except Exception as e: print(e)"
    )
    drop = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--"]
    found = subprocess.run(
        [*drop, sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "CAP_SYS_ADMIN" in found
    assert "CAP_NET_ADMIN" not in found
    assert "sudo" in found


def test_the_system_directories_are_searched_without_being_on_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    assert search_path().split(":") == ["/usr/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]
