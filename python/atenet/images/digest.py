"""What an image is, as one number: its files, their modes and links, and what it is started with."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from atenet import trees

__all__ = ["digest_of"]

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def digest_of(rootfs: Path, facts: Mapping[str, object]) -> str:
    """SHA-256 in hex; neither times nor owners count. Reads all of it. Raises OSError."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for step in trees.walk(rootfs):
        _note(digest, step.path, os.fstat(step.descriptor), b"")
        for name in step.others:
            found = os.stat(name, dir_fd=step.descriptor, follow_symlinks=False)
            content = b""
            if stat.S_ISLNK(found.st_mode):
                content = os.fsencode(os.readlink(name, dir_fd=step.descriptor))
            elif stat.S_ISREG(found.st_mode):
                content = _content(name, step.descriptor)
            _note(digest, f"{step.path}/{name}", found, content)
    return digest.hexdigest()


def _note(digest: hashlib._Hash, path: str, found: os.stat_result, content: bytes) -> None:
    kind = f"\0{stat.S_IFMT(found.st_mode):o} {stat.S_IMODE(found.st_mode):o}\0"
    digest.update(os.fsencode(path) + kind.encode() + content + b"\0")


def _content(name: str, directory: int) -> bytes:
    """Of a file: its own digest."""
    with os.fdopen(os.open(name, _OPEN, dir_fd=directory), "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
