"""Runs `ip` and `nft` with their input on stdin; a child inherits the thread's namespace."""

from __future__ import annotations

import subprocess

from atenet.errors import AteError

__all__ = ["run"]

_TIMEOUT_SECONDS = 10.0


def run(arguments: list[str], text: str) -> str:
    """What it printed. Raises AteError with the tool's own words when it fails."""
    try:
        done = subprocess.run(
            arguments,
            check=False,
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except FileNotFoundError:
        raise AteError(
            f"{arguments[0]} is not installed",
            hint="apt-get install iproute2 nftables",
        ) from None
    except subprocess.TimeoutExpired:
        raise AteError(f"{arguments[0]} did not finish in {_TIMEOUT_SECONDS:.0f} s") from None
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split())
        raise AteError(f"{' '.join(arguments)} failed: {words}")
    return done.stdout
