#!/usr/bin/env python3
"""Builds gVisor's `runsc` from its Go module into a cache outside the tree: `tools/runsc.py`.

Standard library only. Which gVisor is pinned by tools/gvisor/go.mod, and every module it is made
from by go.sum beside it; tools/gvisor/build says how it is made. The program must be linked
statically (CGO_ENABLED=0): it runs itself again in an empty root directory. A `runsc` on PATH that
is recent enough is used as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import golang

TOOLS = Path(__file__).resolve().parent
SOURCE = golang.Source(
    "runsc",
    TOOLS / "gvisor",
    r"gvisor\.dev/gvisor v0\.0\.0-(\d{14}-[0-9a-f]{12})",
    ", or put a runsc of gVisor's release 20260905 or later on PATH, then run the same command again",
    "a minute or two, once",
)

sys.path.append(str(TOOLS.parent / "python" / "atenet" / "gvisor"))
import locate  # type: ignore[import-not-found]  # noqa: E402 - the product's, needs only Python


def ensure() -> Path:
    """The runsc to use, built if there is none yet. Raises golang.GoError."""
    present: Path | None = locate.find_runsc()
    if present is not None:
        return present
    version = SOURCE.pinned()
    target: Path = locate.cache() / version / "runsc"
    words = ("run", "-mod=readonly", "./build", "-version", f"atenet-{version}")

    def make(go: str) -> Path:
        return golang.whole(target, go, SOURCE.module, lambda made: [*words, str(made)])

    return SOURCE.made(target, make)


if __name__ == "__main__":
    sys.exit(golang.main(ensure))
