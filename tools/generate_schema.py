#!/usr/bin/env python3
"""Generates docs/agentgateway.schema.json from the pydantic models. A test runs it with --check."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from atenet.agentgateway import schema_text

TARGET = Path(__file__).resolve().parent.parent / "docs" / "agentgateway.schema.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the committed file differs")
    if not parser.parse_args().check:
        TARGET.write_text(schema_text(), encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == schema_text():
        return 0
    print(f"out of date: {TARGET.name}\nhint: run tools/generate_schema.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
