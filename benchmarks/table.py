"""benchmarks/README.md: the table of all measures, between two marks, from the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS
from benchmarks.result import read_all

__all__ = ["PAGE", "render", "update"]

PAGE = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def render(results: dict[str, dict[str, Any]]) -> str:
    """Markdown: one row a measure, taken or not."""
    lines = [
        "| id | what | goal | value | ours | peer | met | date |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for identity, goal in GOALS.items():
        found = results.get(identity)
        if found is None:
            cells = ["-", "-", "-", "not taken yet", "-"]
        else:
            peer = f"{_number(found['peer'])} ({found['peer_name']})" if found["peer"] else "-"
            met = "yes" if goal.met(found["value"]) else "**no**"
            value = f"{_number(found['value'])} {found['unit']}"
            cells = [value, _number(found["ours"]), peer, met, found["date"][:10]]
        lines.append("| " + " | ".join([identity, goal.what, goal.text, *cells]) + " |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.3g}"


def update(page: Path = PAGE) -> None:
    """Writes the table between the marks of the page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{render(read_all())}\n{END}{after}")
