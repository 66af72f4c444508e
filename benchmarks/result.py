"""What a measure yields, and the file it is kept in."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, versions

__all__ = ["RESULTS", "Outcome", "read_all", "write"]

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`value` is what the goal speaks of: the median over `runs`. `runs` holds what each run saw."""

    value: float
    ours: float
    peer: float | None = None
    peer_name: str | None = None
    runs: list[Any] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)  # of what it was compared with
    also: dict[str, Any] = field(
        default_factory=dict
    )  # what was seen besides, and how it was set up


def write(identity: str, unit: str, outcome: Outcome, command: str) -> Path:
    """Keeps the outcome in results/<id>.json."""
    content = {
        "id": identity,
        **asdict(outcome),
        "unit": unit,
        "command": command,
        "versions": {**versions(), **outcome.versions},
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{identity}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path


def read_all(results: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Every kept result by id."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(results.glob("P-*.json"))}
