"""Builds a program from a pinned Go module into a cache outside the tree. Standard library only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["GO_MINIMUM", "GoError", "build", "find_go"]

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
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        made = Path(scratch) / target.name
        command: Sequence[str] = [
            *(go, "build", "-mod=readonly", "-trimpath", *flags, "-o", str(made), package),
        ]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        if subprocess.run(command, cwd=module, env=environment, check=False).returncode:
            raise GoError
        made.replace(target)
    return target
