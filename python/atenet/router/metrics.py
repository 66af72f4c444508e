"""The engine's metrics with the counts that only Envoy knows put in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["CONTENT_TYPE", "merge"]

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def merge(engine: str, envoy: Mapping[str, int] | None) -> str:
    """The engine's text, in which Envoy's numbers replace those of what it does not carry itself."""
    for name, value in (envoy or {}).items():
        engine = re.sub(rf"^{name} .*$", f"{name} {value}", engine, flags=re.MULTILINE)
    return engine
