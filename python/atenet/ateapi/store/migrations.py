"""Numbered SQL files: migration N brings schema N-1 to N. Each engine has its own, all alike."""

from __future__ import annotations

from importlib import resources

__all__ = ["numbered"]


def numbered(package: str) -> list[str]:
    """The statements of each file of the package's `migrations` folder, in order."""
    folder = resources.files(package) / "migrations"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [f.read_text() for f in files]
