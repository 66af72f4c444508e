"""Objects as files below one directory."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

from atenet.snapshots.interface import StoredObject

__all__ = ["FileObjects"]

_PARTIAL = ".partial"


class FileObjects:
    """What it has said it wrote survives a power cut, names of directories included."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.url = f"file://{quote(str(self.root))}"

    def put(self, key: str, content: bytes) -> None:
        target = self._path(key)
        _make_durable(target.parent)
        partial = target.with_name(target.name + _PARTIAL)
        with partial.open("wb") as file:
            file.write(content)
            _sync(file)
        partial.replace(target)
        _sync_directory(target.parent)

    def get(self, key: str) -> bytes:
        return self._path(key).read_bytes()

    @contextmanager
    def writer(self, key: str) -> Iterator[IO[bytes]]:
        target = self._path(key)
        _make_durable(target.parent)
        try:
            with target.open("wb") as file:
                yield file
                _sync(file)
        except BaseException:
            target.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                target.parent.rmdir()
            raise

    @contextmanager
    def reader(self, key: str) -> Iterator[IO[bytes]]:
        with self._path(key).open("rb") as file:
            yield file

    def exists(self, key: str) -> bool:
        return self._path(key).is_file()

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        for base, directories, files in os.walk(self._path(prefix)):
            directories.sort()
            for name in sorted(files):
                path = Path(base, name)
                with contextlib.suppress(FileNotFoundError):
                    found = path.stat()
                    key = str(path.relative_to(self.root))
                    yield StoredObject(key, found.st_size, found.st_mtime)

    def remove(self, prefix: str) -> None:
        """And the directories that become empty above it."""
        directory = self._path(prefix)
        doomed = directory.with_name(f".doomed-{directory.name}")
        with contextlib.suppress(FileNotFoundError):
            # In one step: a part of a snapshot must never be taken for one.
            directory.rename(doomed)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(doomed)
        for parent in directory.parents:
            if parent == self.root or not parent.is_relative_to(self.root):
                break
            with contextlib.suppress(OSError):
                parent.rmdir()

    def _path(self, key: str) -> Path:
        path = self.root / key
        if ".." in path.parts or not path.is_relative_to(self.root):
            raise ValueError(f"{key!r} is not a key")
        return path


def _make_durable(directory: Path) -> None:
    """Makes the directory so that its own name survives a power cut too."""
    missing = []
    current = directory
    while not current.exists():
        missing.append(current)
        current = current.parent
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        _sync_directory(path.parent)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
