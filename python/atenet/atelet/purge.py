"""Empties a node's directories for good: what an uninstallation leaves there otherwise."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from pathlib import Path

from atenet import trees
from atenet.daemon import Stop, announce_ready
from atenet.errors import AteError
from atenet.flags import flag

__all__ = ["PurgeSettings", "purge", "serve"]

_log = logging.getLogger(__name__)
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, kw_only=True)
class PurgeSettings:
    directory: tuple[Path, ...] = flag("Whose content is removed, all of it; repeatable.")
    ready_file: Path | None = flag("File to make once nothing is left.", default=None)
    log_level: str = flag("debug, info, warning or error.", default="info")


async def serve(settings: PurgeSettings, stop: Stop) -> None:
    """Removes, says so, and waits to be told to stop. Raises AteError: something stays, and what."""
    for directory in settings.directory:
        count = await asyncio.to_thread(purge, directory)
        _log.info("emptied", extra={"directory": str(directory), "entries": count})
    announce_ready(settings.ready_file, {})
    await stop.wait()


def purge(directory: Path) -> int:
    """How many entries of it were removed. Links are not followed; nothing that is mounted in it is touched, and
    then nothing at all. Raises AteError."""
    if directory.is_symlink() or not directory.is_dir():
        raise AteError(f"--directory {directory}: is no directory")
    if directory.resolve().parent == directory.resolve():
        raise AteError(f"--directory {directory}: is the root of everything")
    if mounted := _mounted_in(directory.resolve()):
        raise AteError(
            f"--directory {directory}: {mounted[0]} is mounted in it; nothing was removed",
            hint="unmount it on the node, or remove what is to go by hand",
        )
    entries = sorted(directory.iterdir())
    for entry in entries:
        try:
            trees.remove(entry)
        except OSError as error:
            raise AteError(f"--directory {directory}: {error}") from error
    return len(entries)


def _mounted_in(directory: Path) -> list[str]:
    lines = _MOUNTS.read_text().splitlines()
    points = [_ESCAPED.sub(lambda m: chr(int(m[1], 8)), line.split()[4]) for line in lines]
    return [point for point in points if point.startswith(f"{directory}/")]
