"""Which files a container without an image sees: a fingerprint of the host's programs.

It is made of what is installed, not of the files themselves, which would take minutes to read: the
packages with their versions, the system's release, and the names and sizes of what people put below
/usr/local. Hosts that have the same installed have the same one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["HostFiles"]

_DPKG = "var/lib/dpkg/status"
# Package tables of other systems count as they are, with their times.
_TABLES = ("lib/apk/db/installed", "var/lib/rpm/rpmdb.sqlite", "usr/lib/sysimage/rpm/rpmdb.sqlite")
_RELEASES = ("etc/os-release", "usr/lib/os-release")
_BY_HAND = ("usr/local/bin", "usr/local/sbin", "usr/local/lib")
_PYTHON = "usr/local/lib/python3*/*-packages"
# Where nothing says what is installed.
_TREES = ("usr", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/libexec", "usr/share")
_FIELDS = re.compile(r"^(?:Package|Status|Architecture|Version): .*$", re.MULTILINE)


class HostFiles:
    """Every method blocks for some ms."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._packages: tuple[tuple[int, ...], str] | None = None

    def fingerprint(self) -> str:
        """Never raises: what cannot be read counts as not there."""
        digest = hashlib.sha256()
        for line in self._lines():
            digest.update(line.encode(errors="surrogateescape") + b"\n")
        return digest.hexdigest()[:32]

    def _lines(self) -> Iterator[str]:
        for name in _RELEASES:
            yield self._text(name)
        known = self._dpkg()
        yield known
        tables = [table for table in _TABLES if (self._root / table).exists()]
        for name in tables:
            yield f"{name} {_when(self._root / name)}"
        if not known and not tables:
            for name in _TREES:
                yield f"{name} {_when(self._root / name)}"
        for directory in (*(self._root / name for name in _BY_HAND), *self._root.glob(_PYTHON)):
            yield from _names(directory)

    def _dpkg(self) -> str:
        """Package, status, architecture and version of each; "" without dpkg."""
        path = self._root / _DPKG
        try:
            found = path.stat()
        except OSError:
            return ""
        now = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._packages is None or self._packages[0] != now:
            stanzas = self._text(_DPKG).split("\n\n")
            said = sorted(" ".join(_FIELDS.findall(stanza)) for stanza in stanzas)
            self._packages = (now, "\n".join(said))
        return self._packages[1]

    def _text(self, name: str) -> str:
        try:
            return (self._root / name).read_text(errors="surrogateescape")
        except OSError:
            return ""


def _names(directory: Path) -> Iterator[str]:
    """Of directories the names, of files also the sizes: times differ from host to host."""
    try:
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                plain = entry.is_file(follow_symlinks=False)
                size = entry.stat(follow_symlinks=False).st_size if plain else "-"
                yield f"{directory.name}/{entry.name} {size}"
    except OSError:
        return


def _when(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_size} {found.st_mtime_ns}"
