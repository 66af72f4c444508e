"""Snapshots in a store: `<store>/<atespace>/<actor uid>/<snapshot id>/<archive or manifest>`.

Each archive is written and is durable, then the manifest. A crash at any point leaves either a whole
snapshot or objects without a manifest, which are nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

import zstandard

from atenet import trees
from atenet.atelet.snapshot import archive, extract
from atenet.atelet.snapshot.ahead import ReadAhead
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
from atenet.gvisor import MemoryNeeds
from atenet.snapshots import ObjectStore, SnapshotUris

__all__ = ["SnapshotStore"]

# Fast above all: an actor is not suspended until this is done.
_LEVEL = 1
_READ_BYTES = 1024 * 1024
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

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._uris = SnapshotUris(objects.url)

    def find(self, uri: str) -> Manifest | None:
        """The manifest of a committed snapshot. Raises SnapshotDamagedError."""
        try:
            content = self._objects.get(f"{self._key(uri)}/{FILE_NAME}")
        except FileNotFoundError:
            return None
        return Manifest.decode(content, f"{uri}/{FILE_NAME}")

    def save(
        self,
        uri: str,
        volumes: Mapping[str, Path],
        described: Manifest,
        memory: tuple[Path, MemoryNeeds] | None = None,
    ) -> Manifest:
        """Stores the directories under `uri`; when it returns they survive a power cut.

        `described`: the manifest without volumes and memory; `memory`: directory of the image, and
        what it depends on. Raises OSError when the store cannot take it; then nothing is left there.
        """
        key = self._key(uri)
        try:
            entries = tuple(self._save_volume(key, name, path) for name, path in volumes.items())
            image = None if memory is None else self._save_memory(key, *memory)
            manifest = replace(described, volumes=entries, memory=image)
            self._objects.put(f"{key}/{FILE_NAME}", manifest.encode())
        except BaseException:
            with contextlib.suppress(OSError):
                self._objects.remove(key)
            raise
        self._drop_unfinished(key)
        return manifest

    def load(self, uri: str, into: Path, memory: Path | None = None) -> Manifest:
        """Unpacks every volume to `into/<name>`; `into` must not exist and is whole or absent.

        `memory`: an empty directory for the image, if there is one. Raises SnapshotMissingError,
        SnapshotDamagedError, OSError.
        """
        manifest = self.manifest(uri)
        partial = into.with_name(f"{into.name}.partial")
        trees.remove_quietly(partial)
        try:
            partial.mkdir(mode=0o700, parents=True)
            for entry in manifest.volumes:
                target = partial / entry.name
                target.mkdir(mode=0o700)
                self._load(uri, entry.file, entry.sha256, target)
            if memory is not None and manifest.memory is not None:
                self._load(uri, manifest.memory.file, manifest.memory.sha256, memory)
            partial.rename(into)
        except BaseException:
            trees.remove_quietly(partial)
            raise
        return manifest

    def needs(self) -> Iterator[MemoryNeeds]:
        """Of the memory of every committed snapshot that can be read. Raises OSError."""
        for found in self._objects.list():
            directory, _, name = found.key.rpartition("/")
            if name != FILE_NAME:
                continue
            # Removed meanwhile; or damaged, and then nothing can go on from it.
            with contextlib.suppress(FileNotFoundError, SnapshotDamagedError):
                manifest = Manifest.decode(self._objects.get(found.key), directory)
                if manifest.memory is not None:
                    yield manifest.memory.needs

    def verify(self, uri: str) -> Manifest:
        """Reads all of it. Raises SnapshotMissingError, SnapshotDamagedError, OSError."""
        manifest = self.manifest(uri)
        parts = [(entry.file, entry.sha256) for entry in manifest.volumes]
        if manifest.memory is not None:
            parts.append((manifest.memory.file, manifest.memory.sha256))
        for file, sha256 in parts:
            self.compare(uri, file, sha256)
        return manifest

    def compare(self, uri: str, file: str, sha256: str) -> None:
        """Reads one file of it. Raises SnapshotDamagedError and OSError."""
        with self._reading(uri, file) as counted:
            counted.exhaust()
        counted.check(sha256, f"{uri}/{file}")

    def manifest(self, uri: str) -> Manifest:
        """Raises SnapshotMissingError and SnapshotDamagedError."""
        manifest = self.find(uri)
        if manifest is None:
            raise SnapshotMissingError(f"there is no snapshot {uri}")
        return manifest

    def _key(self, uri: str) -> str:
        """Raises AteError for anything that is not a snapshot of this store."""
        key = self._uris.key(uri)
        if key is None:
            raise AteError(
                f"snapshot_uri {uri!r} is not in this node's store {self._objects.url}",
                hint="ateapi and atelet must be given the same --snapshots",
            )
        return key

    def _save_volume(self, key: str, name: str, volume: Path) -> VolumeEntry:
        file = archive_name(name)
        return VolumeEntry(name, file, *self._save(f"{key}/{file}", volume))

    def _save_memory(self, key: str, image: Path, needs: MemoryNeeds) -> MemoryEntry:
        written = self._save(f"{key}/{MEMORY_FILE}", image)
        return MemoryEntry(MEMORY_FILE, *written, needs.runtime, dict(needs.roots))

    def _save(self, key: str, source: Path) -> tuple[str, int]:
        """Digest and size of what was written."""
        with self._objects.writer(key) as file:
            counted = _Hashing(file)
            compressor = zstandard.ZstdCompressor(level=_LEVEL)
            with compressor.stream_writer(counted, closefd=False) as stream:  # type: ignore[arg-type]
                archive.write(source, stream)
        return counted.hexdigest(), counted.size

    def _load(self, uri: str, file: str, sha256: str, target: Path) -> None:
        """What was unpacked counts only once the whole file has proved to be the one written."""
        top = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with self._reading(uri, file) as counted:
                problem = _unpack(counted, top)
                counted.exhaust()
        finally:
            os.close(top)
        counted.check(sha256, f"{uri}/{file}")
        if problem is not None:
            raise SnapshotDamagedError(f"{uri}/{file} is damaged: {problem}") from problem

    @contextlib.contextmanager
    def _reading(self, uri: str, file: str) -> Iterator[_Hashing]:
        try:
            with self._objects.reader(f"{self._key(uri)}/{file}") as opened:
                yield _Hashing(opened)
        except FileNotFoundError:
            raise SnapshotDamagedError(f"{uri}/{file} is missing") from None

    def _drop_unfinished(self, committed: str) -> None:
        """An actor is stored by one node at a time, so other beginnings of it were given up.

        Committed snapshots are left alone: only the control plane knows which it still names.
        """
        above = committed.rpartition("/")[0]
        siblings: dict[str, set[str]] = {}
        with contextlib.suppress(OSError):
            for found in self._objects.list(f"{above}/"):
                key, _, file = found.key.rpartition("/")
                siblings.setdefault(key, set()).add(file)
            for key, files in siblings.items():
                if key not in (committed, above) and FILE_NAME not in files:
                    self._objects.remove(key)


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

    def exhaust(self) -> None:
        """Reads what is left."""
        while self.read(_READ_BYTES):
            pass

    def check(self, sha256: str, where: str) -> None:
        """Raises SnapshotDamagedError unless all that passed through is what was written."""
        if self.hexdigest() != sha256:
            raise SnapshotDamagedError(f"{where} is damaged: its checksum is not the manifest's")

    def _note(self, data: bytes) -> None:
        self._digest.update(data)
        self.size += len(data)


def _unpack(source: _Hashing, top: int) -> Exception | None:
    try:
        with (
            zstandard.ZstdDecompressor().stream_reader(source, closefd=False) as stream,  # type: ignore[arg-type]
            ReadAhead(stream) as pieces,
        ):
            extract.read(cast("IO[bytes]", pieces), top)
    except _DAMAGE as e:
        return e
    return None
