"""Builds programs from pinned Go modules into a cache outside the tree. Standard library only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GO_MINIMUM", "LEAN", "GoError", "Source", "build", "find_go", "main"]

GO_MINIMUM = (1, 26)
# Nobody looks into it with a debugger: neither written while compiling nor linked.
LEAN = ("-gcflags=all=-dwarf=false", "-ldflags=-s -w")
_GO_PLACES = ("/usr/local/go/bin", "/usr/lib/go/bin", "/usr/lib/go-1.26/bin")


class GoError(Exception):
    """A program is not there and cannot be built; the text says what to do."""


def find_go() -> str | None:
    """A go command that is new enough."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_GO_PLACES])
    go = shutil.which("go", path=path)
    if go is None:
        return None
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return go if found and (int(found[1]), int(found[2])) >= GO_MINIMUM else None


@dataclass(frozen=True)
class Source:
    """What is built from the module in `module`, whose go.mod pins it by what `pin` finds, as one group.

    `name`: as people call it; `hint`: what helps, besides a Go; `time`: how long it takes.
    """

    name: str
    module: Path
    pin: str
    hint: str
    time: str = "some minutes, once"

    def pinned(self) -> str:
        """The version. Raises GoError."""
        found = re.search(self.pin, (self.module / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            raise GoError(f"{self.module / 'go.mod'} pins no {self.name}")
        return found[1]

    def directory(self) -> Path:
        """Where its programs are, once they are built."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "atenet" / self.module.name / self.pinned()

    def made(self, target: Path, make: Callable[[str], Path]) -> Path:
        """`target`, made if it is not there yet; `make` is given the go command. Raises GoError."""
        if target.exists():
            return target
        go = find_go()
        wanted = f"hint: install Go {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer{self.hint}"
        if go is None:
            raise GoError(f"there is no Go to build {self.name} with\n{wanted}")
        print(
            f"==> {self.module.name}: building {target.name} {self.pinned()} ({self.time})",
            flush=True,
        )
        try:
            return make(go)
        except subprocess.CalledProcessError as error:
            said = f"{self.name} could not be built; the words are above\n{wanted}"
            raise GoError(said) from error


def build(go: str, module: Path, package: str, target: Path, *flags: str) -> Path:
    """`target` once it is whole: linked statically, of exactly what go.sum in `module` names.

    Raises CalledProcessError.
    """
    words = ("build", "-mod=readonly", "-trimpath", *flags)
    return whole(target, go, module, lambda made: [*words, "-o", str(made), package])


def whole(target: Path, go: str, module: Path, words: Callable[[Path], Sequence[str]]) -> Path:
    """`target`, once a go command in `module` has made it at the path that its words are given.

    Raises CalledProcessError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        made = Path(scratch) / target.name
        # Programs that run `go` themselves find the same one.
        path = os.pathsep.join([str(Path(go).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        subprocess.run([go, *words(made)], cwd=module, env=environment, check=True)
        made.replace(target)
    return target


def main(ensure: Callable[[], Path]) -> int:
    """Of a script that builds one: prints where it is."""
    try:
        print(ensure())
    except GoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
