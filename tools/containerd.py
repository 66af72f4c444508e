#!/usr/bin/env python3
"""Builds containerd, which `make node` runs pods with, into a cache outside the tree: `tools/containerd.py`.

Standard library only. Which containerd is pinned by tools/containerd/go.mod, and every module it is
made from by go.sum beside it.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import golang

PACKAGE = "github.com/containerd/containerd/v2"
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
SOURCE = golang.Source(
    "containerd",
    Path(__file__).resolve().parent / "containerd",
    rf"{PACKAGE} (v2\.\d+\.\d+)$",
    ", then run the same command again; a node cannot do without",
)


def ensure() -> Path:
    """Where its programs are, with what is not there yet built. Raises golang.GoError."""
    for name in PROGRAMS:
        target = SOURCE.directory() / name
        package = f"{PACKAGE}/cmd/{name}"
        SOURCE.made(target, partial(_build, package=package, target=target))
    return SOURCE.directory()


def _build(go: str, package: str, target: Path) -> Path:
    return golang.build(go, SOURCE.module, package, target, *golang.LEAN)


if __name__ == "__main__":
    sys.exit(golang.main(ensure))
