"""Files that hold keys: strict modes, replaced by rename, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from atenet.errors import AteError

__all__ = ["locked", "private_directory", "read_private", "write_private", "write_public"]


def private_directory(path: Path) -> Path:
    """Makes the directory (0700) or checks it. Raises AteError when others may enter it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise AteError(f"cannot make {path}: {e.strerror}") from e
    _refuse_loose(path, "chmod 700")
    return path


def read_private(path: Path) -> bytes:
    """Reads a file with a key in it. Raises AteError when it is missing or others may read it."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise AteError(
            f"cannot read {path}: {e.strerror}", hint="is this the right state directory?"
        ) from e
    _refuse_loose(path, "chmod 600")
    return content


def write_private(path: Path, content: bytes) -> None:
    """Replaces the file by rename, mode 0600; a reader sees the old content or the new."""
    _replace(path, content, 0o600)


def write_public(path: Path, content: bytes) -> None:
    """Replaces the file by rename, mode 0644."""
    _replace(path, content, 0o644)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on the file, across processes; the kernel frees it if we die."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refuse_loose(path: Path, fix: str) -> None:
    found = path.stat()
    if found.st_mode & 0o077 and not _lent(found, path):
        mode = stat.S_IMODE(found.st_mode)
        raise AteError(
            f"{path} has mode {mode:04o}: other users may reach the keys in it",
            hint=f"if nobody else can have read it: {fix} {path}; else delete it",
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise AteError(
            f"{path} belongs to user {found.st_uid}, not to user {os.geteuid()}",
            hint="run as the user who made it, or choose another state directory",
        )


def _lent(found: os.stat_result, path: Path) -> bool:
    """A file that a group of ours may read, and that was put there for us: root's, who has no other
    way to lend it, or one on a read-only mount. So Kubernetes mounts keys into a pod with a group."""
    if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o037:
        return False
    if found.st_gid not in {os.getegid(), *os.getgroups()}:
        return False
    by_root = found.st_uid == 0 != os.geteuid()
    return by_root or bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _replace(path: Path, content: bytes, mode: int) -> None:
    # The temporary name is in the same directory, so that the rename is atomic.
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as e:
        scratch.unlink(missing_ok=True)
        raise AteError(f"cannot write {path}: {e.strerror}") from e
