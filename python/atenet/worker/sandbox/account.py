"""The unprivileged account that an actor runs as, and the hand-over of its directories.

The number is derived from the actor's uid, so it is the same on every worker and after every
resume, no two actors share one in practice, and it owns nothing else on the host.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from atenet import trees

__all__ = [
    "FIRST",
    "HOME",
    "LAST",
    "account_of",
    "files_for",
    "hand_over",
    "is_process_of",
    "processes_of",
]

# Above every range that distributions hand out to people, services and containers' subordinate
# ids by default, below the kernel's signed limit.
FIRST = 0x6000_0000
LAST = 0x6FFF_FFFF

HOME = "/home/actor"


def account_of(actor_uid: str) -> int:
    """User and group number of this actor."""
    digest = hashlib.sha256(actor_uid.encode()).digest()
    return FIRST + int.from_bytes(digest[:8], "big") % (LAST - FIRST + 1)


def processes_of(account: int) -> Iterator[int]:
    """The pids of all that runs under it, as this process numbers them."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_process_of(int(entry.name), account):
            yield int(entry.name)


def is_process_of(pid: int, account: int) -> bool:
    """False also for a zombie: it runs no more; only its parent can remove it."""
    process = Path("/proc", str(pid))
    with suppress(OSError):
        if process.stat().st_uid == account:
            return (process / "stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
    return False


def hand_over(directory: Path, account: int) -> None:
    """Makes everything below `directory` the account's; blocks for as long as the tree is large.

    The top is changed last and tells that the rest is done, so a directory that was handed over
    before costs one look.
    """
    if directory.lstat().st_uid == account:
        return
    for step in trees.walk(directory):
        for name in (*step.directories, *step.others):
            _give(name, account, step.descriptor)
    os.chown(directory, account, account, follow_symlinks=False)


def _give(name: str, account: int, directory: int) -> None:
    before = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if before.st_uid == account and before.st_gid == account:
        return
    os.chown(name, account, account, dir_fd=directory, follow_symlinks=False)
    if before.st_mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISLNK(before.st_mode):
        # A change of owner drops these bits; the snapshot had them.
        os.chmod(name, stat.S_IMODE(before.st_mode), dir_fd=directory)


def files_for(actor_name: str, account: int, nameserver: str) -> dict[str, str]:
    """What the actor finds in /etc that tells who and where it is, by file name."""
    return {
        "passwd": (
            "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
            f"actor:x:{account}:{account}:actor:{HOME}:/bin/sh\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "group": f"root:x:0:\nactor:x:{account}:\nnogroup:x:65534:\n",
        "hostname": f"{actor_name}\n",
        "hosts": f"127.0.0.1 localhost {actor_name}\n",
        "resolv.conf": f"nameserver {nameserver}\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
    }
