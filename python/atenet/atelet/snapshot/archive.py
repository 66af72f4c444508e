"""Writes a directory as a tar that GNU tar reads too.

Modes and times are kept, links stay links, holes stay holes; owners are normalised to 0, since
an account belongs to a host. Sockets and devices are left out: they mean nothing elsewhere.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from atenet import trees
from atenet.errors import AteError

__all__ = ["TooDeepError", "check_depth", "write"]

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TYPES = {
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
}
# Each level costs more than the one above, when it is written and when it is unpacked.
_DEEPEST = 2000
_BLOCK_BYTES = 512  # of a tar, and what st_blocks counts in


class TooDeepError(AteError):
    """No snapshot can hold these directories."""


def check_depth(directory: Path) -> None:
    """Raises TooDeepError for what `write` would not take, and OSError. Reads names alone."""
    for step in trees.walk(directory):
        _check(step)


def write(directory: Path, target: IO[bytes]) -> None:
    """Nothing outside `directory` is ever read. Raises OSError and TooDeepError."""
    with tarfile.open(
        fileobj=target, mode="w|", format=tarfile.PAX_FORMAT, errors="surrogateescape"
    ) as tar:
        _Writer(tar).tree(directory)


@dataclass
class _Writer:
    tar: tarfile.TarFile
    # First name of every file that has more than one.
    linked: dict[tuple[int, int], str] = field(default_factory=dict)

    def tree(self, top: Path) -> None:
        for step in trees.walk(top):
            _check(step)
            self.tar.addfile(_header(step.path or ".", os.fstat(step.descriptor)))
            for name in step.others:
                path = f"{step.path}/{name}" if step.path else name
                self._entry(path, name, step.descriptor)

    def _entry(self, path: str, name: str, directory: int) -> None:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_IFMT(found.st_mode) not in _TYPES:
            return
        header = _header(path, found)
        if header.issym():
            header.linkname = os.readlink(name, dir_fd=directory)
        elif header.isreg() and self._is_known(header, found):
            header.type, header.size = tarfile.LNKTYPE, 0
        elif header.isreg():
            with os.fdopen(os.open(name, _OPEN, dir_fd=directory), "rb") as file:
                self._file(header, file, found)
            return
        self.tar.addfile(header)

    def _is_known(self, header: tarfile.TarInfo, found: os.stat_result) -> bool:
        if found.st_nlink == 1:
            return False
        header.linkname = self.linked.setdefault((found.st_dev, found.st_ino), header.name)
        if header.linkname != header.name:
            return True
        header.linkname = ""
        return False

    def _file(self, header: tarfile.TarInfo, file: IO[bytes], found: os.stat_result) -> None:
        if found.st_blocks * _BLOCK_BYTES >= found.st_size:
            self.tar.addfile(header, file)
            return
        extents = list(_extents(file.fileno(), found.st_size))
        table = _sparse_table(extents)
        header.pax_headers = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": header.name,
            "GNU.sparse.realsize": str(header.size),
        }
        header.size = len(table) + sum(length for _, length in extents)
        self.tar.addfile(header, _Extents(table, file, extents))


def _check(step: trees.Directory) -> None:
    if step.depth > _DEEPEST:
        raise TooDeepError(
            f"directories are nested more than {_DEEPEST} deep, below {step.path[:100]}",
            hint="no snapshot holds more; have the actor remove them",
        )


class _Extents(io.RawIOBase):
    """A file's data without its holes, behind the table that says where the data belong."""

    def __init__(self, table: bytes, file: IO[bytes], extents: list[tuple[int, int]]) -> None:
        self._table = table
        self._file = file
        self._left = extents
        self._position = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, as tarfile expects of a file."""
        pieces = [self._table[:size]]
        self._table = self._table[size:]
        missing = size - len(pieces[0])
        while missing and self._left:
            offset, length = self._left[0]
            self._file.seek(offset + self._position)
            piece = self._file.read(min(missing, length - self._position))
            if not piece:
                raise OSError("file shrank while it was stored")
            pieces.append(piece)
            missing -= len(piece)
            self._position += len(piece)
            if self._position == length:
                del self._left[0]
                self._position = 0
        return b"".join(pieces)


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """(offset, length) of the parts that hold data."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:  # ENXIO: only a hole is left
            return
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end - start


def _sparse_table(extents: list[tuple[int, int]]) -> bytes:
    numbers = [len(extents), *(number for extent in extents for number in extent)]
    text = "".join(f"{number}\n" for number in numbers).encode()
    return text + b"\0" * (-len(text) % _BLOCK_BYTES)


def _header(path: str, found: os.stat_result) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.type = _TYPES[stat.S_IFMT(found.st_mode)]
    header.mode = stat.S_IMODE(found.st_mode)
    header.mtime = found.st_mtime_ns / 1_000_000_000
    header.size = found.st_size if header.isreg() else 0
    return header
