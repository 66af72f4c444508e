"""Unpacks an archive into an empty directory and nowhere else.

Every step is taken from an open directory without following links, so no name and no link in an
archive, however made, leads out of the directory.
"""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, cast

__all__ = ["UnsafeArchiveError", "read"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY_BYTES = 256 * 1024


class UnsafeArchiveError(ValueError):
    """The archive holds what `archive.write` never writes."""


def read(source: IO[bytes], top: int) -> None:
    """`top`: descriptor of the directory. Raises UnsafeArchiveError, tarfile.TarError, OSError."""
    unpacker = _Unpacker(top)
    try:
        with tarfile.open(
            fileobj=source, mode="r|", bufsize=_COPY_BYTES, errors="surrogateescape"
        ) as tar:
            for member in tar:
                unpacker.add(tar, member)
        unpacker.finish()
    finally:
        unpacker.close()


@dataclass
class _Unpacker:
    top: int
    # Set at the end: a directory may not be writable, and unpacking into it changes its time.
    directories: list[tuple[tuple[str, ...], tarfile.TarInfo]] = field(default_factory=list)
    _parent: tuple[tuple[str, ...], int] | None = None

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        if member.isdir():
            if parts:
                os.mkdir(parts[-1], 0o700, dir_fd=self._open(parts[:-1]))
            self.directories.append((parts, member))
            return
        if not parts:
            raise UnsafeArchiveError(f"{member.name!r} is not a directory")
        name, parent = parts[-1], self._open(parts[:-1])
        if member.isreg():
            self._file(tar, member, name, parent)
        elif member.issym():
            os.symlink(member.linkname, name, dir_fd=parent)
            _set_time(member, name, parent)
        elif member.islnk():
            self._hard_link(member, name, parent)
        elif member.isfifo():
            os.mkfifo(name, member.mode, dir_fd=parent)
            os.chmod(name, member.mode, dir_fd=parent)
        else:
            raise UnsafeArchiveError(f"{member.name!r} is of a type that snapshots never hold")

    def finish(self) -> None:
        """Deepest first, so that no directory is closed before what is in it."""
        for parts, member in reversed(self.directories):
            descriptor = self._walk(parts)
            try:
                os.fchmod(descriptor, member.mode)
                os.utime(descriptor, (member.mtime, member.mtime))
            finally:
                os.close(descriptor)

    def close(self) -> None:
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, parent: int) -> None:
        source = cast("IO[bytes]", tar.fileobj)
        source.seek(member.offset_data)
        with os.fdopen(os.open(name, _NEW_FILE, 0o600, dir_fd=parent), "wb") as file:
            sparse: list[tuple[int, int]] | None = getattr(member, "sparse", None)
            for offset, length in [(0, member.size)] if sparse is None else sparse:
                # The data of all extents stand one behind the other.
                file.seek(offset)
                _copy(source, file, length)
            file.truncate(member.size)
            file.flush()
            os.fchmod(file.fileno(), member.mode)
            os.utime(file.fileno(), (member.mtime, member.mtime))

    def _hard_link(self, member: tarfile.TarInfo, name: str, parent: int) -> None:
        target = _parts(member.linkname)
        if not target:
            raise UnsafeArchiveError(f"{member.name!r} links to the top")
        descriptor = self._walk(target[:-1])
        try:
            os.link(
                target[-1],
                name,
                src_dir_fd=descriptor,
                dst_dir_fd=parent,
                follow_symlinks=False,
            )
        finally:
            os.close(descriptor)

    def _open(self, parts: tuple[str, ...]) -> int:
        """The directory's descriptor; most entries lie in the same one as the entry before."""
        if self._parent is None or self._parent[0] != parts:
            descriptor = self._walk(parts, self._parent)
            self.close()
            self._parent = (parts, descriptor)
        return self._parent[1]

    def _walk(
        self, parts: tuple[str, ...], above: tuple[tuple[str, ...], int] | None = None
    ) -> int:
        """`above`: an open directory; where it leads towards `parts` the walk begins there."""
        known, start = above or ((), self.top)
        if parts[: len(known)] != known:
            known, start = (), self.top
        current = os.open(".", _DIRECTORY, dir_fd=start)
        for part in parts[len(known) :]:
            try:
                deeper = os.open(part, _DIRECTORY, dir_fd=current)
            finally:
                os.close(current)
            current = deeper
        return current


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise UnsafeArchiveError(f"{name!r} leads out of the directory")
    return path.parts


def _copy(source: IO[bytes], target: IO[bytes], length: int) -> None:
    while length:
        piece = source.read(min(length, _COPY_BYTES))
        if not piece:
            raise UnsafeArchiveError("the archive ends within a file")
        target.write(piece)
        length -= len(piece)


def _set_time(member: tarfile.TarInfo, name: str, parent: int) -> None:
    os.utime(name, (member.mtime, member.mtime), dir_fd=parent, follow_symlinks=False)
