"""The snapshot store on a file system: `file://<root>/<atespace>/<actor uid>/<snapshot id>`.

Each volume's archive is written and synced, then the manifest. A crash at any point leaves either
a whole snapshot or a directory without a manifest, which is nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

import zstandard

from atenet.atelet.snapshot import archive, extract
from atenet.atelet.snapshot.manifest import (
    FILE_NAME,
    MEMORY_FILE,
    Manifest,
    MemoryEntry,
    SnapshotDamagedError,
    SnapshotMissingError,
    VolumeEntry,
    archive_name,
)
from atenet.errors import AteError
from atenet.gvisor import Runtime

__all__ = ["SnapshotStore"]

# Fast above all: an actor is not suspended until this is done.
_LEVEL = 1
_DEPTH = 3
# What unpacking something else than what was written can come to. A full or failing disk is not.
_DAMAGE = (
    zstandard.ZstdError,
    tarfile.TarError,
    ValueError,
    OverflowError,
    EOFError,
    FileExistsError,
    NotADirectoryError,
)


class SnapshotStore:
    """Every method blocks: call it on a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def find(self, uri: str) -> Manifest | None:
        """The manifest of a committed snapshot. Raises SnapshotDamagedError."""
        file = self._directory(uri) / FILE_NAME
        try:
            return Manifest.decode(file.read_bytes(), str(file))
        except FileNotFoundError:
            return None

    def save(
        self,
        uri: str,
        volumes: Mapping[str, Path],
        described: Manifest,
        memory: tuple[Path, Runtime] | None = None,
    ) -> Manifest:
        """Stores the directories under `uri`; when it returns they survive a power cut.

        `described`: the manifest without volumes and memory; `memory`: directory of the image, and
        what it depends on. Raises OSError when the store cannot take it.
        """
        directory = self._directory(uri)
        _make_durable(directory)
        try:
            entries = tuple(_save_volume(directory, name, path) for name, path in volumes.items())
            image = None if memory is None else _save_memory(directory, *memory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        manifest = replace(described, volumes=entries, memory=image)
        partial = directory / f"{FILE_NAME}.partial"
        with partial.open("wb") as file:
            file.write(manifest.encode())
            _sync(file)
        partial.replace(directory / FILE_NAME)
        _sync_directory(directory)
        self._drop_unfinished(directory)
        return manifest

    def load(self, uri: str, into: Path, memory: Path | None = None) -> Manifest:
        """Unpacks every volume to `into/<name>`; `into` must not exist and is whole or absent.

        `memory`: an empty directory for the image, if there is one. Raises SnapshotMissingError,
        SnapshotDamagedError, OSError.
        """
        manifest = self.find(uri)
        if manifest is None:
            raise SnapshotMissingError(f"there is no snapshot {uri}")
        partial = into.with_name(f"{into.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            partial.mkdir(mode=0o700, parents=True)
            for entry in manifest.volumes:
                target = partial / entry.name
                target.mkdir(mode=0o700)
                _load(self._directory(uri) / entry.file, entry.sha256, target)
            if memory is not None and manifest.memory is not None:
                image = manifest.memory
                _load(self._directory(uri) / image.file, image.sha256, memory)
            partial.rename(into)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return manifest

    def _directory(self, uri: str) -> Path:
        """Raises AteError for anything that is not a snapshot of this store."""
        parts = urlsplit(uri)
        path = Path(unquote(parts.path))
        inside = path.is_relative_to(self._root) and ".." not in path.parts
        if (
            parts.scheme != "file"
            or parts.netloc
            or not inside
            or len(path.relative_to(self._root).parts) != _DEPTH
        ):
            raise AteError(
                f"snapshot_uri {uri!r} is not in this node's store {self._root}",
                hint="ateapi and atelet must be given the same --snapshots",
            )
        return path

    def _drop_unfinished(self, committed: Path) -> None:
        """An actor is stored by one node at a time, so other beginnings of it were given up.

        Committed snapshots are left alone: only the control plane knows which it still names.
        """
        for sibling in committed.parent.iterdir():
            if sibling != committed and not (sibling / FILE_NAME).exists():
                shutil.rmtree(sibling, ignore_errors=True)


class _Hashing:
    """Passes bytes through and keeps count and digest of them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._note(data)
        return self._file.write(data)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._note(data)
        return data

    def flush(self) -> None:
        self._file.flush()

    def hexdigest(self) -> str:
        return self._digest.hexdigest()

    def _note(self, data: bytes) -> None:
        self._digest.update(data)
        self.size += len(data)


def _save_volume(directory: Path, name: str, volume: Path) -> VolumeEntry:
    file_name = archive_name(name)
    return VolumeEntry(name, file_name, *_save(directory / file_name, volume))


def _save_memory(directory: Path, image: Path, runtime: Runtime) -> MemoryEntry:
    return MemoryEntry(MEMORY_FILE, *_save(directory / MEMORY_FILE, image), runtime)


def _save(target: Path, source: Path) -> tuple[str, int]:
    """Digest and size of what was written."""
    with target.open("wb") as file:
        counted = _Hashing(file)
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        with compressor.stream_writer(counted, closefd=False) as stream:  # type: ignore[arg-type]
            archive.write(source, stream)
        _sync(file)
    return counted.hexdigest(), counted.size


def _load(where: Path, sha256: str, target: Path) -> None:
    """What was unpacked counts only once the whole file has proved to be the one written."""
    top = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with where.open("rb") as file:
            counted = _Hashing(file)
            problem = _unpack(counted, top)
            while counted.read(1024 * 1024):
                pass
        if counted.hexdigest() != sha256:
            raise SnapshotDamagedError(f"{where} is damaged: its checksum is not the manifest's")
        if problem is not None:
            raise SnapshotDamagedError(f"{where} is damaged: {problem}") from problem
    except FileNotFoundError:
        raise SnapshotDamagedError(f"{where} is missing") from None
    finally:
        os.close(top)


def _unpack(source: _Hashing, top: int) -> Exception | None:
    try:
        with zstandard.ZstdDecompressor().stream_reader(source, closefd=False) as stream:  # type: ignore[arg-type]
            extract.read(stream, top)
    except _DAMAGE as e:
        return e
    return None


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
