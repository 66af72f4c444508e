"""The images of a node: `<root>/<name>/<version>/{rootfs,image.json}`, and `<root>/<name>/current`.

An image is whole or absent: it is made beside its place and renamed, and `current` is replaced by
rename. An older version stays until the image is removed, for what runs on it; whatever starts or
wakes from then on is given the current one.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from atenet import trees
from atenet._engine import check_name
from atenet.errors import AteError

__all__ = ["Image", "ImageStore"]

_CURRENT, _FACTS, _ROOTFS = "current", "image.json", "rootfs"


@dataclass(frozen=True)
class Image:
    """What is used where a template says nothing."""

    name: str
    version: str
    rootfs: Path
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    working_dir: str = "/"
    source: str = ""


class ImageStore:
    """Every method blocks."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, name: str) -> Image | None:
        try:
            version = (self._root / name / _CURRENT).readlink().name
            directory = self._root / name / version
            facts = json.loads((directory / _FACTS).read_text())
            return Image(
                name=name,
                version=version,
                rootfs=directory / _ROOTFS,
                command=tuple(facts["command"]),
                environment=dict(facts["environment"]),
                working_dir=facts["working_dir"],
                source=facts["source"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def list(self) -> list[Image]:
        names = sorted(path.name for path in self._root.glob("*") if path.is_dir())
        return [found for name in names if (found := self.find(name)) is not None]

    def add(
        self,
        name: str,
        source: str,
        fill: Callable[[Path], dict[str, object]],
        *,
        replace: bool = False,
    ) -> Image:
        """`fill` fills the empty root directory and returns the facts: command, environment,
        working_dir. `replace`: also a name that is taken. Raises AteError and what `fill` raises,
        and leaves nothing then."""
        try:
            check_name(name)
        except ValueError as e:
            raise AteError(f"image name {name!r}: {e}") from e
        if not replace and self.find(name) is not None:
            raise AteError(
                f"there is an image {name} already",
                hint="another name, or --replace: its sleeping actors then wake on the new files",
            )
        version = secrets.token_hex(6)
        beside = self._root / name / f".making-{version}"
        try:
            (beside / _ROOTFS).mkdir(mode=0o755, parents=True)
            facts = fill(beside / _ROOTFS)
            (beside / _FACTS).write_text(json.dumps({**facts, "source": source}))
            beside.rename(self._root / name / version)
        except BaseException:
            trees.remove_quietly(beside)
            with suppress(OSError):
                (self._root / name).rmdir()
            raise
        link = self._root / name / f".current-{version}"
        link.symlink_to(version)
        link.replace(self._root / name / _CURRENT)
        found = self.find(name)
        assert found is not None
        return found

    def remove(self, name: str) -> bool:
        """With all its versions. False when there was none."""
        if self.find(name) is None:
            return False
        trees.remove(self._root / name)
        return True
