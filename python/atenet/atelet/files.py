"""Each actor's files on this node, below `<root>/<uid>`: `volumes/<name>`, `memory`, `logs` and, of a
paused one, `paused`."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from atenet import trees
from atenet._engine import check_name
from atenet.errors import AteError

__all__ = ["ActorFiles"]

_log = logging.getLogger(__name__)
_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_LOGS_KEPT_SECONDS = 7 * 24 * 3600.0


class ActorFiles:
    """Every method blocks: call it on a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def directory(self, uid: str) -> Path:
        """Raises AteError when `uid` cannot be one."""
        if not _UID.fullmatch(uid):
            raise AteError(f"actor_uid {uid!r} is not a uid")
        return self._root / uid

    def volumes_directory(self, uid: str) -> Path:
        return self.directory(uid) / "volumes"

    def fresh_memory(self, uid: str) -> Path:
        """An empty directory for a memory image; whatever was in it is gone."""
        directory = self.directory(uid) / "memory"
        trees.remove_quietly(directory)
        directory.mkdir(mode=0o700, parents=True)
        return directory

    def drop_memory(self, uid: str) -> list[Path]:
        """Puts the image out of the way, to be removed; a sandbox that still reads from it has its
        files open."""
        return _aside(self.directory(uid) / "memory")

    def paused(self, uid: str) -> Path:
        """Where a pause leaves what it keeps beside the durable directories."""
        return self.directory(uid) / "paused"

    def all(self) -> list[str]:
        """The uids of which there is anything."""
        return sorted(path.name for path in self._root.iterdir() if _UID.fullmatch(path.name))

    def volumes(self, uid: str) -> dict[str, Path] | None:
        """The durable directories that are on this node, by volume name; None without any."""
        try:
            found = sorted(self.volumes_directory(uid).iterdir())
        except FileNotFoundError:
            return None
        return {path.name: path for path in found}

    def discard(self, uid: str) -> None:
        """Removes the durable directories and the memory; the logs stay for a while, to explain what
        happened."""
        for doomed in self.put_aside(uid):
            trees.remove_quietly(doomed)

    def put_aside(self, uid: str) -> list[Path]:
        """The same, but for the removing itself, which takes its time; and what was put aside before."""
        directory = self.directory(uid)
        found = self.drop_memory(uid)
        for left in ("paused", "paused.making", "volumes"):
            # In one step: half a directory must never be taken for one.
            found += _aside(directory / left)
        return sorted({*found, *directory.glob("doomed-*")})

    def prepare(self, uid: str, names: Iterable[str]) -> Path:
        """Makes the durable directories that are not there yet; returns the actor's directory.

        Raises AteError when a volume's name cannot be a file's.
        """
        directory = self.directory(uid)
        volumes = [_checked(name) for name in names]
        # One by one: parents that mkdir makes on the way would be open to others.
        for private in ("", "logs", "volumes", *(f"volumes/{name}" for name in volumes)):
            (directory / private).mkdir(mode=0o700, exist_ok=True)
        return directory

    def forget_old_logs(self, now: float | None = None) -> None:
        """Removes the directories of actors that left this node long ago."""
        limit = (time.time() if now is None else now) - _LOGS_KEPT_SECONDS
        for directory in self._root.iterdir():
            named = {"actor_uid": directory.name}
            try:
                if not (directory / "volumes").exists() and _last_change(directory) < limit:
                    trees.remove(directory)
                    _log.info("forgot an actor's old logs", extra=named)
            except OSError as e:
                _log.warning("an actor's old files stay", extra=named | {"error": str(e)})


def _aside(path: Path) -> list[Path]:
    doomed = path.with_name(f"doomed-{path.name}-{secrets.token_hex(4)}")
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return []
    return [doomed]


def _checked(name: str) -> str:
    try:
        check_name(name)
    except ValueError as e:
        raise AteError(f"template.volumes name {name!r}: {e}") from e
    return name


def _last_change(directory: Path) -> float:
    times = [path.lstat().st_mtime for path in (directory / "logs").glob("*")]
    return max(times, default=directory.lstat().st_mtime)
