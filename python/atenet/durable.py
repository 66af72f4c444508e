"""Files that survive a power cut."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from atenet import trees

__all__ = ["sync_directory", "sync_tree", "write_durably"]

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def sync_directory(directory: Path) -> None:
    """Its names. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(top: Path) -> None:
    """All files and names in it. Raises OSError."""
    for step in trees.walk(top):
        for name in step.others:
            _sync(name, step.descriptor)
        os.fsync(step.descriptor)


def write_durably(path: Path, content: bytes) -> None:
    """The file's content; its name is the directory's. Raises OSError."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(name: str, directory: int) -> None:
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        return
    descriptor = os.open(name, _OPEN, dir_fd=directory)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
