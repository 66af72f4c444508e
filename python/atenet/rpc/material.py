"""Key, chain and roots as gRPC wants them, re-read when their files change."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from atenet.errors import AteError
from atenet.identity import files

__all__ = ["Material", "WatchedMaterial", "split_bundle"]

_log = logging.getLogger(__name__)
_BLOCK = re.compile(rb"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----\n?", re.DOTALL)


@dataclass(frozen=True)
class Material:
    """PEM bytes of one TLS identity and of the roots that its peers must chain to."""

    key: bytes
    chain: bytes
    roots: bytes


def split_bundle(content: bytes, path: Path) -> tuple[bytes, bytes]:
    """(private key, certificate chain) of a credential bundle. Raises AteError naming the file."""
    blocks = [(m.group(1), m.group(0)) for m in _BLOCK.finditer(content)]
    keys = [block for kind, block in blocks if kind.endswith(b"PRIVATE KEY")]
    chain = b"".join(block for kind, block in blocks if kind == b"CERTIFICATE")
    if len(keys) != 1 or not chain:
        raise AteError(
            f"{path} is damaged: expected one private key and its certificate chain",
            hint="delete it to have a new one issued",
        )
    return keys[0], chain


class WatchedMaterial:
    """Reads the two files; `refresh` reads them again only if one was replaced."""

    def __init__(self, credential: Path, roots: Path) -> None:
        self._credential = credential
        self._roots = roots
        # The stamps come first: a file replaced while we read it is then seen as changed.
        self._stamps = self._stat()
        self.current = self._read()

    def refresh(self) -> bool:
        """True when `current` changed. Files that cannot be read now leave it as it was."""
        try:
            stamps = self._stat()
            if stamps == self._stamps:
                return False
            fresh = self._read()
        except AteError as e:
            _log.warning("keeping the old certificates", extra={"error": e.message})
            return False
        self._stamps = stamps
        changed = fresh != self.current
        self.current = fresh
        return changed

    def _stat(self) -> tuple[tuple[int, int, int], ...]:
        try:
            found = [path.stat() for path in (self._credential, self._roots)]
        except OSError as e:
            raise AteError(f"cannot read {e.filename}: {e.strerror}") from e
        return tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in found)

    def _read(self) -> Material:
        key, chain = split_bundle(files.read_private(self._credential), self._credential)
        try:
            roots = self._roots.read_bytes()
        except OSError as e:
            raise AteError(f"cannot read {self._roots}: {e.strerror}") from e
        if b"-----BEGIN CERTIFICATE-----" not in roots:
            raise AteError(
                f"{self._roots} is damaged: no certificate in it",
                hint="restore it, or delete it and restart to have it written again",
            )
        return Material(key, chain, roots)
