"""The metrics page and the registry say the same."""

from __future__ import annotations

import re
from pathlib import Path

from atenet.ateapi.metrics import Metrics

_PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
_ROW = re.compile(r"^\| `(ateapi_\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    documented = {name: kind for name, kind, _ in _ROW.findall(_PAGE.read_text())}
    found = {}
    for family in Metrics().registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        found[name] = family.type
    assert documented == found


def test_no_actor_is_ever_a_label() -> None:
    labels = {
        word for row in _ROW.findall(_PAGE.read_text()) for word in re.findall(r"`(\w+)`", row[2])
    }
    assert labels == {"service", "method", "code", "phase", "state", "outcome", "kind"}
