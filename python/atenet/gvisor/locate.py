"""Finds a `runsc` that is recent enough: on PATH, else the one that `make runsc` built.

Standard library only: the build uses this module before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["OLDEST", "cache", "find_runsc", "release_of", "version_of"]

# The first release whose checkpoints, flags and exit behaviour this product is tested with.
OLDEST = 20260905
_LOOK_SECONDS = 10.0


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Where `make runsc` keeps what it builds: outside any tree, one directory a version."""
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "atenet" / "runsc"


def find_runsc(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The program to use; None when there is none, or only older ones. Blocks for some ms."""
    for candidate in _candidates(environment):
        version = version_of(candidate)
        if version is not None and (release_of(version) or 0) >= OLDEST:
            return candidate
    return None


def version_of(program: Path) -> str | None:
    """What it calls itself, e.g. `release-20260910.0`; None when it does not run."""
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=_LOOK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"runsc version (\S+)", answer.stdout)
    return found[1] if found and answer.returncode == 0 else None


def release_of(version: str) -> int | None:
    """The day in a version's name: 20260905 of `release-20260905.0` and of our own builds."""
    found = re.search(r"(20\d{6})", version)
    return int(found[1]) if found else None


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("runsc", path=environment.get("PATH"))
    if on_path is not None:
        yield Path(on_path)
    # The newest first: names begin with the time of the commit.
    yield from sorted(cache(environment).glob("*/runsc"), reverse=True)
