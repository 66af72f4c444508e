"""Snapshots that a pause leaves on this node: `<actor>/paused/{memory,local.json}`, beside the durable
directories, which stay where they are. Nothing is copied, neither then nor when the actor goes on.

One is whole or absent: it is made beside its place and renamed. It is good for as long as nobody
changes the durable directories: their signature is compared before the memory goes on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet import durable, trees
from atenet.atelet.files import ActorFiles
from atenet.atelet.memory_files import MemoryFiles
from atenet.atelet.snapshot import SnapshotDamagedError, SnapshotMissingError
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds

__all__ = ["DEFAULT_LIMIT_BYTES", "LocalSnapshot", "LocalSnapshots", "NoRoomError"]

_log = logging.getLogger(__name__)
_ABOUT = "local.json"
DEFAULT_LIMIT_BYTES = 32 * 1024**3
_REVERT = "revert the actor: it goes back to its last stored snapshot"


class NoRoomError(AteError):
    """This node keeps no more memory of paused actors."""


@dataclass(frozen=True)
class LocalSnapshot:
    """`memory`: its directory."""

    name: str
    template_uid: str
    memory: Path
    needs: MemoryNeeds
    files: MemoryFiles
    volumes: str


class LocalSnapshots:
    """Every method blocks: call it on a thread. `limit`: bytes of all of them together."""

    def __init__(self, files: ActorFiles, *, limit: int = DEFAULT_LIMIT_BYTES) -> None:
        self._files = files
        self._limit = limit

    def check_room(self, more: int = 0) -> None:
        """Raises NoRoomError when there is none for so many bytes."""
        used = sum(trees.size(self._files.paused(uid)) for uid, _ in self.all())
        if used + more > self._limit or used == self._limit:
            raise NoRoomError(
                f"paused actors take {used} bytes on this node, {self._limit} are the limit"
                + (f" and {more} more are needed" if more else ""),
                hint="suspend it, or some that are paused; --paused-bytes of the node's agent",
            )

    def keep(
        self, uid: str, name: str, template_uid: str, memory: Path, needs: MemoryNeeds
    ) -> None:
        """Takes over the directory. Raises NoRoomError and OSError, and keeps nothing then."""
        self.check_room(trees.size(memory))
        target = self._files.paused(uid)
        making = target.with_name(f"{target.name}.making")
        trees.remove(making)
        making.mkdir(mode=0o700)
        about = {
            "name": name,
            "template_uid": template_uid,
            **needs.as_json(),
            "memory": MemoryFiles.of(memory, checksums=False).as_json(),
            "volumes": _signature(self._files.volumes_directory(uid)),
        }
        durable.sync_tree(memory)
        durable.write_durably(making / _ABOUT, json.dumps(about).encode())
        memory.rename(making / "memory")
        durable.sync_directory(making)
        trees.remove(target)
        making.rename(target)
        durable.sync_directory(target.parent)

    def find(self, uid: str, name: str) -> LocalSnapshot | None:
        """None when there is none of that name. Raises SnapshotDamagedError."""
        path = self._files.paused(uid)
        about = _about(path)
        if about is None or about.get("name") != name:
            return None
        try:
            return LocalSnapshot(
                name=name,
                template_uid=str(about["template_uid"]),
                memory=path / "memory",
                needs=MemoryNeeds.from_json(about),
                files=MemoryFiles.from_json(about["memory"]),
                volumes=str(about["volumes"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise SnapshotDamagedError(f"the paused actor's {_ABOUT} is damaged: {e!r}") from e

    def whole(self, uid: str, name: str, template_uid: str) -> LocalSnapshot:
        """One that the actor can go on from. Raises SnapshotMissingError and SnapshotDamagedError."""
        found = self.find(uid, name)
        if found is None:
            raise SnapshotMissingError(
                f"this node does not have the paused actor's memory {name} any more", hint=_REVERT
            )
        if found.template_uid != template_uid:
            raise SnapshotDamagedError(
                "the paused actor's memory is of another template than it has now", hint=_REVERT
            )
        try:
            problem = found.files.differs(found.memory, whole=False)
            if not problem and _signature(self._files.volumes_directory(uid)) != found.volumes:
                problem = "its durable directories were changed after it was paused"
        except FileNotFoundError as e:
            problem = str(e)
        if problem:
            raise SnapshotDamagedError(f"the paused actor's memory: {problem}", hint=_REVERT)
        return found

    def is_unused(self, uid: str, name: str) -> bool:
        """Whether nothing has gone on from it."""
        try:
            found = self.find(uid, name)
            volumes = _signature(self._files.volumes_directory(uid))
        except (SnapshotDamagedError, OSError):
            return False
        return found is not None and found.volumes == volumes

    def drop(self, uid: str) -> None:
        """A sandbox that still reads from it has its files open."""
        path = self._files.paused(uid)
        doomed = path.with_name(f"{path.name}.doomed")
        trees.remove_quietly(doomed)
        if path.exists():
            path.rename(doomed)
        trees.remove_quietly(doomed)

    def all(self) -> list[tuple[str, str]]:
        """Uid and name of each."""
        found = ((uid, self.name(uid)) for uid in self._files.all())
        return [(uid, name) for uid, name in found if name is not None]

    def name(self, uid: str) -> str | None:
        """Of what is there; "" when that cannot be read; None when there is nothing."""
        about = _about(self._files.paused(uid))
        return None if about is None else str(about.get("name", ""))

    def needs(self) -> Iterator[MemoryNeeds]:
        """Of every one that can be read."""
        for uid, name in self.all():
            try:
                found = self.find(uid, name)
            except SnapshotDamagedError:
                continue
            if found is not None:
                yield found.needs


def _about(path: Path) -> dict[str, Any] | None:
    """None when there is none; an empty one when it cannot be read."""
    try:
        content = (path / _ABOUT).read_bytes()
    except OSError:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _signature(top: Path) -> str:
    """Of what everything in it is and when it was changed last; no content is read."""
    digest = hashlib.sha256()
    for step in trees.walk(top):
        found = [(step.path, os.fstat(step.descriptor))]
        for name in step.others:
            seen = os.stat(name, dir_fd=step.descriptor, follow_symlinks=False)
            found.append((f"{step.path}/{name}", seen))
        for path, seen in found:
            size = 0 if stat.S_ISDIR(seen.st_mode) else seen.st_size
            said = f"\0{seen.st_mode:o} {size} {seen.st_ino} {seen.st_mtime_ns}\0"
            digest.update(os.fsencode(path) + said.encode())
    return digest.hexdigest()
