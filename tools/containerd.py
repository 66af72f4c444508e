#!/usr/bin/env python3
"""Builds containerd, which `make node` runs pods with, into a cache outside the tree: `tools/containerd.py`.

Standard library only. Which containerd is pinned by tools/containerd/go.mod, and every module it is
made from by go.sum beside it.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import golang

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "tools" / "containerd"
PACKAGE = "github.com/containerd/containerd/v2"
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
ADVICE = (
    f"hint: install Go {golang.GO_MINIMUM[0]}.{golang.GO_MINIMUM[1]} or newer, then run the same "
    "command again; a node cannot do without"
)
_LEAN = ("-gcflags=all=-dwarf=false", "-ldflags=-s -w")


class ContainerdError(Exception):
    """There is no containerd and none can be built; the text says what to do."""


def pinned() -> str:
    """`v2.4.2`: what go.mod names."""
    text = (MODULE / "go.mod").read_text()
    found = re.search(rf"{re.escape(PACKAGE)} (v2\.\d+\.\d+)$", text, re.MULTILINE)
    if found is None:
        raise ContainerdError(f"{MODULE / 'go.mod'} pins no containerd")
    return found[1]


def directory() -> Path:
    """Where its programs are, once they are built."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "atenet" / "containerd" / pinned()


def ensure() -> Path:
    """The directory, with what is not there yet built. Raises ContainerdError."""
    missing = [name for name in PROGRAMS if not (directory() / name).exists()]
    if not missing:
        return directory()
    go = golang.find_go()
    if go is None:
        raise ContainerdError(f"there is no Go to build containerd with\n{ADVICE}")
    print(f"==> containerd: building {pinned()} (some minutes, once)", flush=True)
    try:
        for name in missing:
            golang.build(go, MODULE, f"{PACKAGE}/cmd/{name}", directory() / name, *_LEAN)
    except golang.GoError as error:
        raise ContainerdError(
            f"containerd could not be built; the words are above\n{ADVICE}"
        ) from error
    return directory()


def main() -> int:
    try:
        print(ensure())
    except ContainerdError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
