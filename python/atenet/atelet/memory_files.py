"""The files of a memory image as they were written, to tell whether they still are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["MemoryFiles"]


@dataclass(frozen=True)
class MemoryFiles:
    """By name: size, time of the last change (ns), and SHA-256 or "". All methods block."""

    files: dict[str, tuple[int, int, str]]

    @classmethod
    def of(cls, directory: Path, *, checksums: bool) -> MemoryFiles:
        """Raises OSError."""
        found = {}
        for path in sorted(directory.iterdir()):
            seen = path.stat()
            found[path.name] = (seen.st_size, seen.st_mtime_ns, _sum(path) if checksums else "")
        return cls(found)

    def differs(self, directory: Path, *, whole: bool) -> str:
        """What is not as it was written, or "". `whole`: compares checksums too. Raises OSError."""
        names = {path.name for path in directory.iterdir()}
        if names != set(self.files):
            return f"{', '.join(sorted(names ^ set(self.files)))}: missing or too many"
        for name, (size, changed, digest) in self.files.items():
            seen = (directory / name).stat()
            if seen.st_size != size:
                return f"{name} has {seen.st_size} bytes, {size} were written"
            if seen.st_mtime_ns != changed:
                return f"{name} was changed after it was written"
            if whole and digest and _sum(directory / name) != digest:
                return f"{name}: its checksum is not what was written"
        return ""

    def as_json(self) -> dict[str, Any]:
        return {name: list(entry) for name, entry in self.files.items()}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> MemoryFiles:
        """Raises TypeError, ValueError or AttributeError for anything else."""
        return cls({str(n): (int(s), int(c), str(d)) for n, (s, c, d) in given.items()})


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
