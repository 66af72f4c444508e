"""Reads a stream on a thread of its own, some pieces ahead of who uses it: unpacking a snapshot is as
much work to decompress as to write, and each waits for a disk or a network of its own."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from types import TracebackType
from typing import IO

__all__ = ["ReadAhead"]

_PIECE_BYTES = 256 * 1024
_PIECES = 8


class ReadAhead:
    """What `source` gives, to be read once, in whatever pieces; as a context manager.

    `source` is used by nobody else until the block has ended. What it raises, `read` raises.
    """

    def __init__(
        self, source: IO[bytes], *, piece: int = _PIECE_BYTES, ahead: int = _PIECES
    ) -> None:
        self._source = source
        self._size = piece
        self._room = threading.Semaphore(ahead)
        self._pieces: SimpleQueue[bytes | BaseException] = SimpleQueue()
        self._piece = b""
        self._position = 0
        self._ended = self._left = False
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left = True
        self._room.release()
        self._thread.join()

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes, b"" at the end; -1: as many as there are at hand."""
        if self._position == len(self._piece):
            self._next()
        start = self._position
        end = len(self._piece) if size < 0 else min(start + size, len(self._piece))
        self._position = end
        return self._piece[start:end]

    def _next(self) -> None:
        if self._ended:
            self._piece, self._position = b"", 0
            return
        found = self._pieces.get()
        self._room.release()
        if isinstance(found, BaseException):
            self._ended, self._piece, self._position = True, b"", 0
            raise found
        self._piece, self._position, self._ended = found, 0, not found

    def _run(self) -> None:
        found: bytes | BaseException = b"first"
        while found and not isinstance(found, BaseException):
            self._room.acquire()
            if self._left:
                return
            try:
                found = self._source.read(self._size)
            except BaseException as e:  # noqa: BLE001 - raised where it is read
                found = e
            self._pieces.put(found)
