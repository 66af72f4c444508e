#!/usr/bin/env python3
"""Builds gVisor's `runsc` from its Go module into a cache outside the tree: `tools/runsc.py`.

Standard library only. Which gVisor is pinned by tools/gvisor/go.mod, and every module it is made
from by go.sum beside it. The program must be linked statically (CGO_ENABLED=0): it runs itself
again in an empty root directory. A `runsc` on PATH that is recent enough is used as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "tools" / "gvisor"
GO_MINIMUM = (1, 26)
GO_PLACES = ("/usr/local/go/bin", "/usr/lib/go/bin", "/usr/lib/go-1.26/bin")
ADVICE = (
    f"hint: install Go {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer, or put a runsc of gVisor's release "
    "20260905 or later on PATH, then run the same command again"
)

sys.path.append(str(ROOT / "python" / "atenet" / "gvisor"))
import locate  # type: ignore[import-not-found]  # noqa: E402 - the product's, needs only Python


class RunscError(Exception):
    """There is no runsc and none can be built; the text says what to do."""


def pinned() -> str:
    """`20260905035102-160fafc42237`: the time and commit that go.mod names."""
    text = (MODULE / "go.mod").read_text()
    found = re.search(r"gvisor\.dev/gvisor v0\.0\.0-(\d{14}-[0-9a-f]{12})", text)
    if found is None:
        raise RunscError(f"{MODULE / 'go.mod'} pins no gVisor")
    return found[1]


def find_go() -> str | None:
    """A go command that is new enough."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *GO_PLACES])
    go = shutil.which("go", path=path)
    if go is None:
        return None
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return go if found and (int(found[1]), int(found[2])) >= GO_MINIMUM else None


def ensure() -> Path:
    """The runsc to use, built if there is none yet. Raises RunscError."""
    present: Path | None = locate.find_runsc()
    if present is not None:
        return present
    go = find_go()
    if go is None:
        raise RunscError(f"runsc is missing, and so is a Go to build it with\n{ADVICE}")
    return build(go)


def build(go: str) -> Path:
    """Some minutes on a small machine; about one on a large one."""
    version = pinned()
    target: Path = locate.cache() / version / "runsc"
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"==> runsc: building gVisor {version} (a minute or two, once)", flush=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        made = Path(scratch) / "runsc"
        stamp = f"-X gvisor.dev/gvisor/runsc/version.version=atenet-{version}"
        command = [
            *(go, "build", "-mod=readonly", "-trimpath", "-ldflags", f"-s -w {stamp}"),
            *("-o", str(made), "gvisor.dev/gvisor/runsc"),
        ]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        if subprocess.run(command, cwd=MODULE, env=environment, check=False).returncode:
            raise RunscError(f"runsc could not be built; the words are above\n{ADVICE}")
        made.replace(target)
    return target


def main() -> int:
    try:
        print(ensure())
    except RunscError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
