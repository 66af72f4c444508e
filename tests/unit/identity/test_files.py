from __future__ import annotations

import os
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.identity import files

SOMEBODY, THEIR_GROUP = 65532, 65533


def as_somebody(act: object) -> int:
    """Runs `act` as an account without rights, in a child; its exit status."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            os.setgroups([THEIR_GROUP])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)
            act()  # type: ignore[operator]
            status = 0
        except AteError:
            status = 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def a_file(tmp_path: Path, mode: int, owner: int, group: int) -> Path:
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_uid == os.geteuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o055)
        if each == Path("/tmp"):
            break
    path = tmp_path / "key.pem"
    path.write_text("a key")
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("mode", "owner", "group", "taken"),
    [
        (0o600, SOMEBODY, SOMEBODY, True),
        (0o440, 0, THEIR_GROUP, True),  # as a Secret is mounted with fsGroup
        (0o440, 0, 0, None),  # not even readable
        (0o460, 0, THEIR_GROUP, False),
        (0o444, 0, THEIR_GROUP, False),
        (0o440, SOMEBODY, THEIR_GROUP, False),  # our own, and others read it
        (0o640, SOMEBODY, THEIR_GROUP, False),
    ],
)
def test_a_key_is_read_where_it_is_ours_alone_or_lent_to_a_group_of_ours(
    tmp_path: Path, mode: int, owner: int, group: int, taken: bool | None
) -> None:
    path = a_file(tmp_path, mode, owner, group)
    status = as_somebody(lambda: files.read_private(path))
    assert status == (0 if taken else 1)


def test_root_is_lent_nothing(tmp_path: Path) -> None:
    path = a_file(tmp_path, 0o440, 0, os.getegid())
    with pytest.raises(AteError, match="mode 0440"):
        files.read_private(path)


def test_a_file_of_our_own_on_a_read_only_mount_may_be_read_by_our_group(
    tmp_path: Path, read_only: Path
) -> None:
    """A projected volume with runAsUser and fsGroup."""
    assert as_somebody(lambda: files.read_private(read_only / "key.pem")) == 0


@pytest.fixture
def read_only(tmp_path: Path):
    import subprocess

    source = tmp_path / "volume"
    source.mkdir()
    a_file(source, 0o640, SOMEBODY, THEIR_GROUP)
    subprocess.run(["mount", "--bind", source, source], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", source], check=True)
    yield source
    subprocess.run(["umount", source], check=True)
