"""Directories whose depth and names somebody else has chosen: no step here recurses.

What an actor nests a thousand levels deep is more than Python's own helpers can walk or remove.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Directory", "remove", "remove_quietly", "size", "walk"]

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SAID = 300


@dataclass(frozen=True)
class Directory:
    """One step of a walk. `path`: below the top, "" for the top itself; `descriptor`: open until the
    next step; `others`: all names that are not directories, links to directories among them."""

    path: str
    depth: int
    descriptor: int
    directories: list[str]
    others: list[str]


def remove(path: Path) -> None:
    """Whatever it is, and nothing on another file system; what is not there is removed.

    Raises OSError.
    """
    if not os.path.lexists(path):
        return
    command = ["rm", "-rf", "--one-file-system", "--", os.fspath(path)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, errors="replace", check=False
    )
    if done.returncode:
        raise OSError(f"removing {path.name}: {' '.join(done.stderr.split())[:_SAID]}")


def remove_quietly(path: Path) -> None:
    """As far as it goes: for what is only in the way."""
    with suppress(OSError):
        remove(path)


def size(top: Path) -> int:
    """Bytes that the files in it take on the disk. Raises OSError."""
    total = 0
    for step in walk(top):
        for name in step.others:
            total += os.stat(name, dir_fd=step.descriptor, follow_symlinks=False).st_blocks * 512
    return total


def walk(top: Path) -> Iterator[Directory]:
    """Every directory before those in it, by name; links are not followed.

    Nobody may move directories meanwhile. One is open at a time, however deep they are. Raises
    OSError.
    """
    current = os.open(top, _OPEN)
    try:
        step = _look("", 0, current)
        above = [(step, sorted(step.directories, reverse=True), _identity(current))]
        yield step
        while above:
            step, left, _ = above[-1]
            if left:
                name = left.pop()
                current = _replaced(current, os.open(name, _OPEN, dir_fd=current))
                path = f"{step.path}/{name}" if step.path else name
                step = _look(path, step.depth + 1, current)
                above.append((step, sorted(step.directories, reverse=True), _identity(current)))
                yield step
                continue
            above.pop()
            if above:
                current = _replaced(current, os.open("..", _OPEN, dir_fd=current))
                if _identity(current) != above[-1][2]:
                    raise OSError(f"{step.path[:_SAID]} was moved while it was read")
    finally:
        os.close(current)


def _look(path: str, depth: int, descriptor: int) -> Directory:
    directories: list[str] = []
    others: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            (directories if is_directory else others).append(entry.name)
    return Directory(path, depth, descriptor, directories, sorted(others))


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new
