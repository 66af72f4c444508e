"""Directories nested deeper than Python's own helpers can go."""

import os
from pathlib import Path

DEEP = 1100


def nested(top: Path, depth: int = DEEP) -> None:
    """With a file at the bottom."""
    current = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=current)
        deeper = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = deeper
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)
