"""The per-actor operation lock: one byte of a lock file per actor, held as an open-file lock.

The kernel drops it when its holder dies, however it dies, and it is held against other
processes on the same store as well as within this one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import struct
from collections.abc import AsyncIterator
from pathlib import Path

from atenet.ateapi.store.interface import HeldError

__all__ = ["OperationLocks"]

# struct flock of 64-bit Linux: type, whence, start, length, pid (0 for open-file locks).
_FLOCK = struct.Struct("hhqqi4x")


class OperationLocks:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held: set[int] = set()

    @contextlib.asynccontextmanager
    async def hold(self, actor_uid: str) -> AsyncIterator[None]:
        """Raises HeldError at once if the actor's byte is taken."""
        byte = _offset(actor_uid)
        if byte in self._held or not self._set(fcntl.F_WRLCK, byte):
            raise HeldError(actor_uid)
        self._held.add(byte)
        try:
            yield
        finally:
            self._held.discard(byte)
            self._set(fcntl.F_UNLCK, byte)

    def close(self) -> None:
        os.close(self._descriptor)

    def _set(self, kind: int, byte: int) -> bool:
        try:
            fcntl.fcntl(
                self._descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0)
            )
        except BlockingIOError:
            return False
        return True


def _offset(actor_uid: str) -> int:
    # 62 bits: two actors that share a byte by chance merely take turns.
    return int.from_bytes(hashlib.blake2b(actor_uid.encode(), digest_size=8).digest()) >> 2
