"""Builds a program from a pinned Go module into a cache outside the tree. Standard library only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["GO_MINIMUM", "GoError", "build", "find_go", "whole"]

GO_MINIMUM = (1, 26)
_GO_PLACES = ("/usr/local/go/bin", "/usr/lib/go/bin", "/usr/lib/go-1.26/bin")


class GoError(Exception):
    """A build ended with words of its own, which are on the screen."""


def find_go() -> str | None:
    """A go command that is new enough."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_GO_PLACES])
    go = shutil.which("go", path=path)
    if go is None:
        return None
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return go if found and (int(found[1]), int(found[2])) >= GO_MINIMUM else None


def build(go: str, module: Path, package: str, target: Path, *flags: str) -> Path:
    """`target` once it is whole: linked statically, of exactly what go.sum in `module` names."""
    words = ("build", "-mod=readonly", "-trimpath", *flags)
    return whole(target, go, module, lambda made: [*words, "-o", str(made), package])


def whole(target: Path, go: str, module: Path, words: Callable[[Path], Sequence[str]]) -> Path:
    """`target`, once a go command in `module` has made it at the path that its words are given."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        made = Path(scratch) / target.name
        # Programs that run `go` themselves find the same one.
        path = os.pathsep.join([str(Path(go).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        command = [go, *words(made)]
        if subprocess.run(command, cwd=module, env=environment, check=False).returncode:
            raise GoError
        made.replace(target)
    return target
