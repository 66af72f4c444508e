"""Golden images: a template is booted once on a node, and its new actors go on from there.

`<root>/<template uid>/`: `memory` (an image that sandboxes read from), `volumes/<name>`, `runtime.json`.
An image is whole or absent: it is made beside its place and renamed. A template never changes, and a
new one of the same name has another uid, so an image is never of an older template.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from atenet import trees
from atenet.errors import AteError
from atenet.gvisor import Runtime
from atenet.proto import ateapi_pb2

__all__ = ["Golden", "GoldenImages", "wants_golden"]

_log = logging.getLogger(__name__)
_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_FAILED = "failed"
_KEPT_SECONDS = 7 * 24 * 3600.0
_COPY_SECONDS = 60.0


def wants_golden(template: ateapi_pb2.ActorTemplate) -> bool:
    """Whether new actors of the template start from a golden image."""
    config = template.snapshot_config
    full = config.content_scope == ateapi_pb2.SNAPSHOT_CONTENT_SCOPE_FULL
    return full and not config.boot_each and bool(_UID.fullmatch(template.metadata.uid))


@dataclass(frozen=True)
class Golden:
    """A whole image."""

    directory: Path
    runtime: Runtime

    @property
    def memory(self) -> Path:
        return self.directory / "memory"

    def copy_volumes(self, into: Path) -> None:
        """Copies its durable directories to `into/<name>`. Blocks. Raises OSError."""
        for volume in sorted((self.directory / "volumes").iterdir()):
            _copy(volume, into / volume.name)


class GoldenImages:
    """Every method blocks, but for `lock`."""

    def __init__(self, root: Path) -> None:
        """Removes what an interrupted run left."""
        self._root = root
        self._locks: dict[str, asyncio.Lock] = {}
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in root.glob(".*"):
            trees.remove_quietly(left)

    def lock(self, template: ateapi_pb2.ActorTemplate) -> asyncio.Lock:
        """One image of a template is made at a time."""
        return self._locks.setdefault(template.metadata.uid, asyncio.Lock())

    def find(self, template: ateapi_pb2.ActorTemplate) -> Golden | None:
        """Notes that it is used."""
        directory = self._root / template.metadata.uid
        try:
            runtime = Runtime.from_json(json.loads((directory / "runtime.json").read_text()))
            os.utime(directory)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Golden(directory, runtime)

    def failed(self, template: ateapi_pb2.ActorTemplate) -> bool:
        """Whether it was tried before and cannot be booted as nobody."""
        return (self._root / template.metadata.uid / _FAILED).exists()

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
        runtime: Runtime,
    ) -> Golden:
        """Raises OSError."""
        beside = self._beside(template)
        for name, volume in volumes.items():
            _copy(volume, beside / "volumes" / name)
        (beside / "runtime.json").write_text(json.dumps(runtime.as_json()))
        self.forget(template)
        beside.rename(self._root / template.metadata.uid)
        _log.info("made a golden image", extra={"template": template.metadata.name})
        return Golden(self._root / template.metadata.uid, runtime)

    def give_up(self, template: ateapi_pb2.ActorTemplate, *, for_good: bool) -> None:
        """`for_good`: its actors are booted one by one from now on."""
        trees.remove_quietly(self._beside(template))
        if for_good:
            with suppress(OSError):
                directory = self._root / template.metadata.uid
                directory.mkdir(mode=0o700, exist_ok=True)
                (directory / _FAILED).touch()

    def forget(self, template: ateapi_pb2.ActorTemplate) -> None:
        """A sandbox that still reads from it has its files open."""
        directory = self._root / template.metadata.uid
        doomed = self._root / f".doomed-{template.metadata.uid}"
        with suppress(FileNotFoundError):
            directory.rename(doomed)
        trees.remove_quietly(doomed)

    def forget_unused(self, now: float | None = None) -> None:
        """Removes the images that no start has used for long."""
        limit = (time.time() if now is None else now) - _KEPT_SECONDS
        for directory in self._root.iterdir():
            with suppress(OSError):
                if not directory.name.startswith(".") and directory.stat().st_mtime < limit:
                    trees.remove(directory)
                    _log.info("forgot an unused golden image", extra={"template": directory.name})

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
