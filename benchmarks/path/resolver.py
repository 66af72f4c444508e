"""What the engine's resolver costs by itself: the example of that name, run on the path's cores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.path.cores import PATH
from benchmarks.path.program import on_cores

__all__ = ["resolver_alone"]

_ROOT = Path(__file__).resolve().parent.parent.parent
_CARGO = [sys.executable, "tools/toolchain.py"]
_EXAMPLE = ["--release", "-q", "-p", "atenet-engine", "--example", "resolver"]


def resolver_alone() -> dict[str, float]:
    """`hits_per_second`, `join_us`, `wake_ms` (of 1 024 callers), as the example says them."""
    subprocess.run([*_CARGO, "build", *_EXAMPLE], cwd=_ROOT, check=True)
    done = subprocess.run(
        [*on_cores(PATH), *_CARGO, "run", *_EXAMPLE],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers
