"""Actors' output: plain files that the actor writes itself, kept small from outside.

Nothing in the supervisor runs per line. A file that grew too large is copied to `<name>.1` and
emptied in place; since it is written in append mode, the writer just goes on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = ["LIMIT_BYTES", "open_log", "path_for", "tail", "trim"]

LIMIT_BYTES = 1024 * 1024
_TAIL_BYTES = 4096
_BLOCK_BYTES = 512  # what st_blocks counts in


def path_for(directory: Path, container: str) -> Path:
    return directory / f"{container}.log"


def open_log(path: Path, account: int) -> int:
    """A descriptor in append mode. The file is the actor's, so that it can open /dev/stdout."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    os.fchown(descriptor, account, account)
    return descriptor


def trim(paths: Iterable[Path], limit: int = LIMIT_BYTES) -> None:
    """Rotates the files that hold more than `limit` bytes on disk. Blocks; absent ones are fine."""
    for path in paths:
        try:
            if path.lstat().st_blocks * _BLOCK_BYTES > limit:
                _rotate(path, limit)
        except FileNotFoundError:
            continue


def tail(path: Path, lines: int = 10) -> str:
    """The last lines, printable; empty when there is no output."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
    last = text.splitlines()[-lines:]
    return "\n".join("".join(c if c.isprintable() else " " for c in line) for line in last).strip()


def _rotate(path: Path, limit: int) -> None:
    partial = path.with_name(f"{path.name}.partial")
    with path.open("r+b") as source:
        with partial.open("wb") as kept:
            source.seek(max(0, source.seek(0, os.SEEK_END) - limit))
            shutil.copyfileobj(source, kept)
        source.truncate(0)
    partial.replace(path.with_name(f"{path.name}.1"))
