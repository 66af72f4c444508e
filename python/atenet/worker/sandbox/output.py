"""Actors' output: a pipe on their side, a file of bounded size on ours.

What an actor writes is fetched in gulps, a few times a second at most, so a line per request
costs the supervisor nothing per request. A pipe that is full slows its writer down.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from concurrent.futures import Executor
from pathlib import Path

__all__ = ["LIMIT_BYTES", "OutputLog", "path_for", "tail"]

_log = logging.getLogger(__name__)

LIMIT_BYTES = 1024 * 1024
_PIPE_BYTES = 256 * 1024
_GULP_BYTES = 64 * 1024
_REST_SECONDS = 0.05
_TAIL_BYTES = 4096


def path_for(directory: Path, container: str) -> Path:
    return directory / f"{container}.log"


def tail(path: Path, lines: int = 10) -> str:
    """The last lines, printable; empty when there is no output. Blocks."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
    last = text.splitlines()[-lines:]
    return "\n".join("".join(c if c.isprintable() else " " for c in line) for line in last).strip()


class OutputLog:
    """Appends to `path`; past `limit` bytes the file becomes `<name>.1` and a new one is begun."""

    def __init__(self, path: Path, account: int, *, limit: int = LIMIT_BYTES) -> None:
        """Blocks. `writer` is for the actor to inherit: call `close_writer` when it has."""
        self.path = path
        self._limit = limit
        self._lost = False
        self._file = _open(path)
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.writer, True)
        # So that programs can open /dev/stdout and /dev/stderr.
        os.fchown(self.writer, account, account)
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    async def copy(self, threads: Executor) -> None:
        """Returns when no process has the pipe open any more."""
        loop = asyncio.get_running_loop()
        written = asyncio.Event()
        loop.add_reader(self._reader, written.set)
        try:
            while True:
                await written.wait()
                loop.remove_reader(self._reader)
                if not await loop.run_in_executor(threads, self.fetch):
                    return
                await asyncio.sleep(_REST_SECONDS)
                written.clear()
                loop.add_reader(self._reader, written.set)
        finally:
            loop.remove_reader(self._reader)

    def fetch(self) -> bool:
        """Copies what is in the pipe. False at its end. Blocks on the disk only."""
        try:
            while piece := os.read(self._reader, _GULP_BYTES):
                self._append(piece)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        self.close_writer()
        os.close(self._reader)
        os.close(self._file)

    def _append(self, piece: bytes) -> None:
        try:
            self._write(piece)
        except OSError as e:
            # A full disk must not stop the actor, whose pipe would fill up too.
            if not self._lost:
                _log.warning("output is lost", extra={"path": str(self.path), "error": str(e)})
            self._lost = True

    def _write(self, piece: bytes) -> None:
        if os.fstat(self._file).st_size + len(piece) > self._limit:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            os.close(self._file)
            self._file = _open(self.path)
        os.write(self._file, piece)


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)
