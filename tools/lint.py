#!/usr/bin/env python3
"""Runs every linter, reports all that failed (not only the first), exits 1 if any did."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import toolchain

BIN = toolchain.ROOT / ".venv" / "bin"
CHECKS: dict[str, list[str]] = {
    "ruff check": [f"{BIN}/ruff", "check", "-q", "."],
    "ruff format": [f"{BIN}/ruff", "format", "--check", "-q", "."],
    "generated proto": [f"{BIN}/python", "tools/generate_proto.py", "--check"],
    "mypy": [f"{BIN}/mypy", "--no-error-summary"],
    "mypy tools": [f"{BIN}/mypy", "--no-error-summary", "--strict", "tools", "benchmarks"],
    "engine stubs": [f"{BIN}/stubtest", "atenet._engine"],
    "cargo fmt": ["cargo", "fmt", "--all", "--check"],
    "clippy": [
        *("cargo", "clippy", "--release", "-q", "--workspace", "--all-targets"),
        *("--", "-D", "warnings"),
    ],
}


def main() -> int:
    environment = {**toolchain.environment(), "MYPYPATH": str(toolchain.ROOT / "python")}
    os.chdir(toolchain.ROOT)
    failed = []
    for name, command in CHECKS.items():
        began = time.monotonic()
        ok = subprocess.run(command, env=environment, check=False).returncode == 0
        print(f"==> {name}: {'ok' if ok else 'FAILED'} ({time.monotonic() - began:.1f} s)")
        sys.stdout.flush()
        if not ok:
            failed.append(name)
    if failed:
        print(
            f"error: failed: {', '.join(failed)}\nhint: `make fmt` mends formats", file=sys.stderr
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
