#!/usr/bin/env python3
"""Generates python/atenet/proto from proto/. A test runs it with --check."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "proto" / "atenet" / "proto").glob("*.proto"))


def generate(out: Path) -> None:
    """Writes *_pb2.py, *_pb2.pyi and *_pb2_grpc.py below `out`/atenet/proto."""
    import grpc_tools

    include = Path(grpc_tools.__file__).parent / "_proto"
    args = ["protoc", f"-I{ROOT / 'proto'}", f"-I{include}"]
    args += [f"--python_out={out}", f"--pyi_out={out}", f"--grpc_python_out={out}"]
    code = protoc.main(args + [str(s) for s in SOURCES])
    if code:
        raise SystemExit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the committed files differ")
    check = parser.parse_args().check
    if not check:
        generate(ROOT / "python")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        stale = [
            made.name
            for made in sorted((Path(scratch) / "atenet" / "proto").iterdir())
            if made.read_bytes() != _committed(made.name)
        ]
    if stale:
        print(f"out of date: {', '.join(stale)}\nhint: run `make proto`", file=sys.stderr)
    return 1 if stale else 0


def _committed(name: str) -> bytes:
    path = ROOT / "python" / "atenet" / "proto" / name
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    sys.exit(main())
