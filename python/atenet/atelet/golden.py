"""Golden images: a template is booted once on a node, and its new actors go on from there.

`<root>/<template uid>/`: `memory` (an image that sandboxes read from), `volumes/<name>`, `golden.json`.
An image is whole or absent: it is made beside its place, is on the disk, and is renamed. A template
never changes, and a new one of the same name has another uid; what else an image depends on (runsc,
processor, root file systems) is written in it, and the worker compares.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from atenet import durable, trees
from atenet.atelet.memory_files import MemoryFiles
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds
from atenet.proto import ateapi_pb2

__all__ = ["Golden", "GoldenImages", "wants_golden"]

_log = logging.getLogger(__name__)
_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_ABOUT, _FAILED = "golden.json", "failed.json"
_KEPT_SECONDS = 7 * 24 * 3600.0
_COPY_SECONDS = 60.0
# A template that could not be booted as nobody is tried again: after a minute, then ever later.
_FIRST_RETRY_SECONDS = 60.0
_LAST_RETRY_SECONDS = 6 * 3600.0
DEFAULT_LIMIT_BYTES = 16 * 1024**3


def wants_golden(template: ateapi_pb2.ActorTemplate) -> bool:
    """Whether new actors of the template start from a golden image."""
    config = template.snapshot_config
    full = config.content_scope == ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL
    return full and not config.boot_each and bool(_UID.fullmatch(template.metadata.uid))


@dataclass(frozen=True)
class Golden:
    """A whole image."""

    directory: Path
    needs: MemoryNeeds

    @property
    def memory(self) -> Path:
        return self.directory / "memory"

    def copy_volumes(self, into: Path) -> None:
        """Copies its durable directories to `into/<name>`. Blocks. Raises OSError."""
        for volume in sorted((self.directory / "volumes").iterdir()):
            _copy(volume, into / volume.name)


class GoldenImages:
    """Every method blocks, but for `lock`. `limit`: bytes of all images together; the least lately
    used make room."""

    def __init__(self, root: Path, *, limit: int = DEFAULT_LIMIT_BYTES) -> None:
        """Removes what an interrupted run left."""
        self._root = root
        self._limit = limit
        self._locks: dict[str, asyncio.Lock] = {}
        self._compared: set[str] = set()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in root.glob(".*"):
            trees.remove_quietly(left)

    def lock(self, template: ateapi_pb2.ActorTemplate) -> asyncio.Lock:
        """One image of a template is made at a time."""
        return self._locks.setdefault(template.metadata.uid, asyncio.Lock())

    def find(self, template: ateapi_pb2.ActorTemplate) -> Golden | None:
        """Notes that it is used. One whose memory is not what was written is removed; its checksums
        are compared when it is used for the first time in this process."""
        uid = template.metadata.uid
        directory = self._root / uid
        try:
            about = json.loads((directory / _ABOUT).read_text())
            needs = MemoryNeeds.from_json(about)
            written = MemoryFiles.from_json(about["memory"])
            problem = written.differs(directory / "memory", whole=uid not in self._compared)
            os.utime(directory)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if problem:
            _log.warning("a golden image is damaged", extra={"template": uid, "error": problem})
            self.forget(uid)
            return None
        self._compared.add(uid)
        return Golden(directory, needs)

    def failed(self, template: ateapi_pb2.ActorTemplate, now: float | None = None) -> bool:
        """Whether it was tried lately and could not be booted as nobody."""
        count, at = self._failures(template.metadata.uid)
        wait = min(_FIRST_RETRY_SECONDS * 2 ** max(0, count - 1), _LAST_RETRY_SECONDS)
        return count > 0 and (time.time() if now is None else now) < at + wait

    def begin(self, template: ateapi_pb2.ActorTemplate) -> Path:
        """An empty directory for its memory; `keep` or `give_up` ends it. Raises OSError."""
        beside = self._beside(template)
        trees.remove_quietly(beside)
        (beside / "volumes").mkdir(mode=0o700, parents=True)
        (beside / "memory").mkdir(mode=0o700)
        return beside / "memory"

    def keep(
        self,
        template: ateapi_pb2.ActorTemplate,
        volumes: Mapping[str, Path],
        needs: MemoryNeeds,
    ) -> Golden:
        """Raises OSError, and AteError when it is larger than all images may be."""
        uid, beside = template.metadata.uid, self._beside(template)
        for name, volume in volumes.items():
            _copy(volume, beside / "volumes" / name)
        size = trees.size(beside)
        if size > self._limit:
            raise AteError(
                f"the golden image has {size} bytes, all together may have {self._limit}",
                hint="--golden-bytes of the node's agent",
            )
        written = MemoryFiles.of(beside / "memory", checksums=True)
        about = {**needs.as_json(), "memory": written.as_json()}
        (beside / _ABOUT).write_text(json.dumps(about))
        durable.sync_tree(beside)
        self.forget(uid)
        self._make_room(size)
        beside.rename(self._root / uid)
        durable.sync_directory(self._root)
        self._compared.add(uid)
        _log.info("made a golden image", extra={"template": template.metadata.name, "bytes": size})
        return Golden(self._root / uid, needs)

    def give_up(
        self, template: ateapi_pb2.ActorTemplate, *, for_good: bool, now: float | None = None
    ) -> None:
        """Nothing happens after `keep`. `for_good`: it is not tried again for a while."""
        uid = template.metadata.uid
        trees.remove_quietly(self._beside(template))
        if for_good:
            count, _ = self._failures(uid)
            at = time.time() if now is None else now
            with suppress(OSError):
                (self._root / uid).mkdir(mode=0o700, exist_ok=True)
                (self._root / uid / _FAILED).write_text(json.dumps({"count": count + 1, "at": at}))

    def forget(self, uid: str) -> None:
        """A sandbox that still reads from it has its files open."""
        if not _UID.fullmatch(uid):
            return
        doomed = self._root / f".doomed-{uid}"
        with suppress(FileNotFoundError):
            (self._root / uid).rename(doomed)
        trees.remove_quietly(doomed)
        self._compared.discard(uid)

    def forget_unused(self, now: float | None = None) -> None:
        """Removes the images that no start has used for long."""
        limit = (time.time() if now is None else now) - _KEPT_SECONDS
        for directory in self._all():
            with suppress(OSError):
                if directory.stat().st_mtime < limit:
                    self.forget(directory.name)
                    _log.info("forgot an unused golden image", extra={"template": directory.name})

    def needs(self) -> Iterator[MemoryNeeds]:
        """Of every image."""
        for directory in self._all():
            with suppress(OSError, ValueError, KeyError, TypeError):
                yield MemoryNeeds.from_json(json.loads((directory / _ABOUT).read_text()))

    def _make_room(self, wanted: int) -> None:
        """Removes the least lately used until so many bytes fit."""
        sizes = {path: trees.size(path) for path in self._all()}
        used = sum(sizes.values())
        for path in sorted(sizes, key=lambda p: p.stat().st_mtime):
            if used + wanted <= self._limit:
                return
            self.forget(path.name)
            used -= sizes[path]
            _log.info("a golden image made room", extra={"template": path.name})

    def _failures(self, uid: str) -> tuple[int, float]:
        """How often, and when last."""
        try:
            found = json.loads((self._root / uid / _FAILED).read_text())
            return int(found["count"]), float(found["at"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0.0

    def _all(self) -> list[Path]:
        return [path for path in self._root.iterdir() if not path.name.startswith(".")]

    def _beside(self, template: ateapi_pb2.ActorTemplate) -> Path:
        return self._root / f".making-{template.metadata.uid}"


def _copy(source: Path, target: Path) -> None:
    """With owners, times and holes; links stay links."""
    command = ["cp", "-a", "--reflink=auto", "--sparse=auto", "-T", "--", str(source), str(target)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COPY_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as e:
        raise AteError(f"copying {source.name} took too long") from e
    if done.returncode:
        raise OSError(f"copying {source.name}: {' '.join(done.stderr.split())}")
