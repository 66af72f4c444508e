"""The images of a node: `<root>/versions/<digest>/{rootfs,image.json}`, and `<root>/names/<name>`,
a link to the newest version of that name.

A version is named after its content and never changes. It is whole or absent: it is made beside its
place and renamed. One that no name leads to any more stays for what sleeps on it, until `collect`.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import secrets
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from atenet import trees
from atenet._engine import check_name
from atenet.errors import AteError
from atenet.images.digest import digest_of

__all__ = ["Image", "ImageStore"]

_log = logging.getLogger(__name__)
_FACTS, _ROOTFS = "image.json", "rootfs"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Image:
    """What is used where a template says nothing. `version`: the digest of all of it."""

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
        self._names = root / "names"
        self._versions = root / "versions"

    def find(self, name: str) -> Image | None:
        """The newest of that name."""
        try:
            version = (self._names / name).readlink().name
        except OSError:
            return None
        return self.version(name, version)

    def version(self, name: str, version: str) -> Image | None:
        """That very one, whatever its name leads to now."""
        directory = self._versions / version
        try:
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

    def list(self) -> Sequence[Image]:
        names = sorted(path.name for path in self._names.glob("*"))
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
                hint="another name, or --replace: what sleeps on the old files wakes on them",
            )
        self._names.mkdir(mode=0o755, parents=True, exist_ok=True)
        beside = self._versions / f".making-{secrets.token_hex(6)}"
        try:
            (beside / _ROOTFS).mkdir(mode=0o755, parents=True)
            facts = fill(beside / _ROOTFS)
            (beside / _FACTS).write_text(json.dumps({**facts, "source": source}))
            version = digest_of(beside / _ROOTFS, facts)
            self._settle(beside, version)
        finally:
            trees.remove_quietly(beside)
        link = self._names / f".{name}-{secrets.token_hex(6)}"
        link.symlink_to(Path("..", "versions", version))
        link.replace(self._names / name)
        found = self.find(name)
        assert found is not None
        return found

    def remove(self, name: str) -> bool:
        """Takes the name away; its versions stay until `collect`. False when there was none."""
        try:
            (self._names / name).unlink()
        except FileNotFoundError:
            return False
        return True

    def hold(self, image: Image) -> int | None:
        """A descriptor that keeps the version from `collect` until it is closed; None when it is
        gone."""
        return self._locked(image.version, fcntl.LOCK_SH)

    def collect(self, used: Callable[[], Set[str]]) -> Sequence[str]:
        """Removes the versions that no name leads to, nothing holds and `used` does not know.

        `used` is asked after each is out of reach of new holders, so nothing can begin to use one in
        between; it is not asked at all where every version has a name. Raises what it raises.
        """
        named = self._named()
        here = sorted(path.name for path in self._versions.glob("*"))
        unnamed = [v for v in here if _DIGEST.fullmatch(v) and v not in named]
        locked = {version: self._locked(version, fcntl.LOCK_EX) for version in unnamed}
        try:
            mine = [version for version, descriptor in locked.items() if descriptor is not None]
            if not mine:
                return []
            kept = used() | self._named()
            doomed = [version for version in mine if version not in kept]
            for version in doomed:
                self._remove(version)
            return doomed
        finally:
            for descriptor in locked.values():
                if descriptor is not None:
                    os.close(descriptor)

    def _named(self) -> set[str]:
        return {image.version for image in self.list()}

    def _settle(self, made: Path, version: str) -> None:
        """The same content is the same version: what is there already stays."""
        target = self._versions / version
        with suppress(OSError):  # not empty
            made.rename(target)
        if self.version("", version) is None:
            self._remove(version)  # what is left of half of one
            made.rename(target)

    def _remove(self, version: str) -> None:
        doomed = self._versions / f".doomed-{secrets.token_hex(6)}"
        with suppress(FileNotFoundError):
            (self._versions / version).rename(doomed)
        trees.remove_quietly(doomed)

    def _locked(self, version: str, kind: int) -> int | None:
        path = self._versions / version / _FACTS
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        return None
