import os
import uuid
from pathlib import Path

from atenet.worker.sandbox import account
from atenet.worker.sandbox.account import account_of, hand_over


def test_an_actors_account_is_its_own_and_stays() -> None:
    uids = [str(uuid.uuid4()) for _ in range(1000)]
    accounts = [account_of(uid) for uid in uids]
    assert len(set(accounts)) == 1000
    assert accounts == [account_of(uid) for uid in uids]
    assert all(account.FIRST <= a <= account.LAST < 2**31 for a in accounts)


def test_everything_below_is_handed_over_and_links_are_not_followed(
    root: None, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    top = tmp_path / "data"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").touch()
    (top / "link").symlink_to(outside)
    (top / "a" / "link").symlink_to(outside / "file")
    hand_over(top, 1610612737)
    for path in (top, top / "a", top / "a/b", top / "a/b/file", top / "link", top / "a/link"):
        assert path.lstat().st_uid == 1610612737, path
    assert outside.stat().st_uid == (outside / "file").stat().st_uid == os.getuid()


def test_mode_bits_survive_it(root: None, tmp_path: Path) -> None:
    top = tmp_path / "data"
    top.mkdir()
    (top / "file").touch()
    (top / "file").chmod(0o6751)
    hand_over(top, 1610612737)
    assert (top / "file").stat().st_mode & 0o7777 == 0o6751


def test_an_interrupted_hand_over_is_finished_by_the_next(root: None, tmp_path: Path) -> None:
    """The top is changed last, so half a tree never looks done."""
    top = tmp_path / "data"
    (top / "a").mkdir(parents=True)
    os.chown(top / "a", 1610612737, 1610612737)
    (top / "b").touch()
    hand_over(top, 1610612737)
    assert (top / "b").stat().st_uid == 1610612737
