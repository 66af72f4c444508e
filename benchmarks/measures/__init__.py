"""How each measure is taken: one module each, found by its name (`p21.py` takes P-21)."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from benchmarks.result import Outcome

__all__ = ["available"]


def available() -> dict[str, Callable[[], Outcome]]:
    """id -> the function that takes it. Each module has one: `take()`."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {
        f"P-{name.removeprefix('p')}": import_module(f"{__name__}.{name}").take for name in names
    }
