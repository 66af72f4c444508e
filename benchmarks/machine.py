"""What a result was taken on: no number means anything without it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import atenet

__all__ = ["machine", "said", "versions"]


def machine() -> dict[str, str | int]:
    """Processor, cores, memory, kernel."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(int(memory[1]) / 1024 / 1024) if memory else 0,
        "kernel": platform.release(),
    }


def versions() -> dict[str, str]:
    """Of this tree and of what it is built with."""
    return {
        "atenet": atenet.__version__,
        "commit": said(["git", "rev-parse", "--short", "HEAD"]),
        "python": platform.python_version(),
        "rustc": said(["rustc", "--version"]),
    }


def said(command: list[str]) -> str:
    """The first line that a program says about itself, on either stream; `unknown` when it says nothing."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
        )
    except OSError:
        return "unknown"
    return next(iter((done.stdout.strip() or done.stderr.strip()).splitlines()), "unknown")
