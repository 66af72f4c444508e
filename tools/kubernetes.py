#!/usr/bin/env python3
"""Builds Kubernetes' control plane, which tests run, into a cache outside the tree: `tools/kubernetes.py`.

`tools/kubernetes.py node` builds what a node runs besides, kubelet and kube-proxy; `make node` wants it.

Standard library only. Which Kubernetes is pinned by tools/kubernetes/go.mod, and every module it is
made from by go.sum beside it. One program is all three of its processes, by its own name or by its
first argument: they share most of their code, which is then linked once.
"""

from __future__ import annotations

import sys
from pathlib import Path

import golang

SOURCE = golang.Source(
    "Kubernetes",
    Path(__file__).resolve().parent / "kubernetes",
    r"k8s\.io/kubernetes (v1\.\d+\.\d+)$",
    ", then run the same command again; what tests Kubernetes cannot do without",
)


def program() -> Path:
    """Where it is, once it is built."""
    return SOURCE.directory() / "kube"


def node_program() -> Path:
    """Where kubelet and kube-proxy are, as one program."""
    return SOURCE.directory() / "kube-node"


def ensure() -> Path:
    """The program, built if it is not there yet. Raises golang.GoError."""
    return _ensure(program(), ".")


def ensure_node() -> Path:
    """The same for a node's."""
    return _ensure(node_program(), "./node")


def _ensure(target: Path, package: str) -> Path:
    return SOURCE.made(
        target, lambda go: golang.build(go, SOURCE.module, package, target, *golang.LEAN)
    )


if __name__ == "__main__":
    sys.exit(golang.main(ensure_node if sys.argv[1:] == ["node"] else ensure))
