#!/usr/bin/env python3
"""Builds gVisor's `runsc` from its Go module into a cache outside the tree: `tools/runsc.py`.

Standard library only. Which gVisor is pinned by tools/gvisor/go.mod, and every module it is made
from by go.sum beside it; tools/gvisor/build says how it is made. The program must be linked
statically (CGO_ENABLED=0): it runs itself again in an empty root directory. A `runsc` on PATH that
is recent enough is used as it is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import golang

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "tools" / "gvisor"
ADVICE = (
    f"hint: install Go {golang.GO_MINIMUM[0]}.{golang.GO_MINIMUM[1]} or newer, or put a runsc of gVisor's release "
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


def ensure() -> Path:
    """The runsc to use, built if there is none yet. Raises RunscError."""
    present: Path | None = locate.find_runsc()
    if present is not None:
        return present
    go = golang.find_go()
    if go is None:
        raise RunscError(f"runsc is missing, and so is a Go to build it with\n{ADVICE}")
    return build(go)


def build(go: str) -> Path:
    """Some minutes on a small machine; about one on a large one."""
    version = pinned()
    target: Path = locate.cache() / version / "runsc"
    print(f"==> runsc: building gVisor {version} (a minute or two, once)", flush=True)
    words = ("run", "-mod=readonly", "./build", "-version", f"atenet-{version}")
    try:
        return golang.whole(target, go, MODULE, lambda made: [*words, str(made)])
    except golang.GoError as error:
        raise RunscError(f"runsc could not be built; the words are above\n{ADVICE}") from error


def main() -> int:
    try:
        print(ensure())
    except RunscError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
