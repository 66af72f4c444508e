#!/usr/bin/env python3
"""Generates docs/agentgateway*.schema.json from the pydantic models. A test runs it with --check."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from atenet.agentgateway.schema import both_schema_text, egress_schema_text, schema_text

DOCS = Path(__file__).resolve().parent.parent / "docs"
TARGETS = {
    DOCS / "agentgateway.schema.json": schema_text,
    DOCS / "agentgateway-egress.schema.json": egress_schema_text,
    DOCS / "agentgateway-both.schema.json": both_schema_text,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a committed file differs")
    if not parser.parse_args().check:
        for target, text in TARGETS.items():
            target.write_text(text(), encoding="utf-8")
        return 0
    stale = [
        target.name
        for target, text in TARGETS.items()
        if not target.exists() or target.read_text(encoding="utf-8") != text()
    ]
    for name in stale:
        print(f"out of date: {name}\nhint: run tools/generate_schema.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
