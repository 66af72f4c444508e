#!/usr/bin/env python3
"""Builds Kubernetes' control plane, which tests run, into a cache outside the tree: `tools/kubernetes.py`.

`tools/kubernetes.py node` builds what a node runs besides, kubelet and kube-proxy; `make node` wants it.

Standard library only. Which Kubernetes is pinned by tools/kubernetes/go.mod, and every module it is
made from by go.sum beside it. One program is all three of its processes, by its own name or by its
first argument: they share most of their code, which is then linked once.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import golang

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "tools" / "kubernetes"
ADVICE = (
    f"hint: install Go {golang.GO_MINIMUM[0]}.{golang.GO_MINIMUM[1]} or newer, then run the same "
    "command again; what tests Kubernetes cannot do without"
)
# Nobody looks into it with a debugger: neither written while compiling nor linked.
LEAN = ("-gcflags=all=-dwarf=false", "-ldflags=-s -w")


class KubernetesError(Exception):
    """There is no Kubernetes and none can be built; the text says what to do."""


def pinned() -> str:
    """`v1.37.2`: what go.mod names."""
    text = (MODULE / "go.mod").read_text()
    found = re.search(r"k8s\.io/kubernetes (v1\.\d+\.\d+)$", text, re.MULTILINE)
    if found is None:
        raise KubernetesError(f"{MODULE / 'go.mod'} pins no Kubernetes")
    return found[1]


def program() -> Path:
    """Where it is, once it is built."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "atenet" / "kubernetes" / pinned() / "kube"


def node_program() -> Path:
    """Where kubelet and kube-proxy are, as one program."""
    return program().with_name("kube-node")


def ensure() -> Path:
    """The program, built if it is not there yet. Raises KubernetesError."""
    return _ensure(program(), ".")


def ensure_node() -> Path:
    """The same for a node's."""
    return _ensure(node_program(), "./node")


def _ensure(target: Path, package: str) -> Path:
    if target.exists():
        return target
    go = golang.find_go()
    if go is None:
        raise KubernetesError(f"there is no Go to build Kubernetes with\n{ADVICE}")
    print(f"==> kubernetes: building {target.name} {pinned()} (some minutes, once)", flush=True)
    try:
        return golang.build(go, MODULE, package, target, *LEAN)
    except golang.GoError as error:
        raise KubernetesError(
            f"Kubernetes could not be built; the words are above\n{ADVICE}"
        ) from error


def main() -> int:
    try:
        print(ensure_node() if sys.argv[1:] == ["node"] else ensure())
    except KubernetesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
