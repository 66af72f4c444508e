"""Network namespaces by name: made, entered, listed and removed.

They are bind-mounted below /run/netns, where `ip netns` and `nsenter` find them. Python 3.11 has
no `os.setns`, so the three system calls go through libc. All of this blocks and switches the
calling thread: run it on a thread, inside `own_namespace_kept`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from atenet.errors import AteError

__all__ = [
    "check_prefix",
    "create",
    "enter",
    "names",
    "own_namespace_kept",
    "path_of",
    "processes_inside",
    "remove",
]

_DIRECTORY = Path("/run/netns")
_CLONE_NEWNET = 0x4000_0000
_MS_BIND, _MS_REC, _MS_SHARED = 0x1000, 0x4000, 0x10_0000
_MNT_DETACH = 2
_PREFIX = re.compile(r"[a-z][a-z0-9-]{1,23}")

_libc = ctypes.CDLL(None, use_errno=True)


def check_prefix(prefix: str) -> str:
    """Everything below this prefix is the worker's to delete, so it must not be vague."""
    if not _PREFIX.fullmatch(prefix):
        raise AteError(
            f"net-prefix {prefix!r} is not 2 to 24 characters of a-z, 0-9 and -",
            hint="choose one that no other worker on this machine uses, e.g. 'atw1-'",
        )
    return prefix


def path_of(name: str) -> Path:
    return _DIRECTORY / name


def names(prefix: str) -> list[str]:
    """The namespaces whose name starts with `prefix`, sorted."""
    try:
        return sorted(entry.name for entry in _DIRECTORY.iterdir() if entry.name.startswith(prefix))
    except FileNotFoundError:
        return []


@contextmanager
def own_namespace_kept() -> Iterator[None]:
    """Wherever the body moves this thread to, it leaves in the namespace that it came from."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _call("setns", home, _CLONE_NEWNET)
        finally:
            os.close(home)


def create(name: str) -> None:
    """Makes the namespace and moves this thread into it. Raises AteError when the name is taken."""
    _shared_directory()
    path = path_of(name)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
    except FileExistsError:
        raise AteError(f"network namespace {name} exists already") from None
    try:
        _call("unshare", _CLONE_NEWNET)
        _mount("/proc/thread-self/ns/net", path, _MS_BIND)
    except OSError as e:
        path.unlink(missing_ok=True)
        raise AteError(
            f"cannot make network namespace {name}: {e.strerror}",
            hint="the worker needs root (CAP_SYS_ADMIN)",
        ) from e


def enter(name: str) -> None:
    """Moves this thread into the namespace."""
    descriptor = os.open(path_of(name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", descriptor, _CLONE_NEWNET)
    finally:
        os.close(descriptor)


def remove(name: str) -> None:
    """Removes the name; the namespace goes with its last process and socket. Absent is fine."""
    path = path_of(name)
    try:
        _call("umount2", os.fsencode(path), _MNT_DETACH)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOENT):
            raise
    path.unlink(missing_ok=True)


def processes_inside(targets: list[str]) -> list[int]:
    """The processes that live in any of these namespaces. Reads all of /proc."""
    inodes = set()
    for name in targets:
        with suppress(OSError):
            inodes.add(path_of(name).stat().st_ino)
    return [int(e.name) for e in Path("/proc").iterdir() if e.name.isdigit() and _in(e, inodes)]


def _in(process: Path, inodes: set[int]) -> bool:
    try:
        return (process / "ns/net").stat().st_ino in inodes
    except OSError:
        return False


def _shared_directory() -> None:
    """As iproute2 does: the mounts in it are then seen by every mount namespace of the host."""
    _DIRECTORY.mkdir(mode=0o755, exist_ok=True)
    try:
        _mount("", _DIRECTORY, _MS_SHARED | _MS_REC)
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise AteError(
                f"cannot share {_DIRECTORY}: {e.strerror}",
                hint="the worker needs root (CAP_SYS_ADMIN)",
            ) from e
        _mount(str(_DIRECTORY), _DIRECTORY, _MS_BIND | _MS_REC)
        _mount("", _DIRECTORY, _MS_SHARED | _MS_REC)


def _mount(source: str, target: Path, flags: int) -> None:
    _call("mount", source.encode(), os.fsencode(target), b"none", ctypes.c_ulong(flags), None)


def _call(function: str, *args: object) -> None:
    call: Callable[..., int] = getattr(_libc, function)
    if call(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
