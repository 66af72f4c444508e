#!/usr/bin/env python3
"""Finds a cargo that is new enough, and runs it: `tools/toolchain.py test --release`.

Standard library only: it runs before anything is installed. Where cargo is missing or too old,
`puccinialin` (from the development requirements) installs one for this user, as maturin does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV_PYTHON = ROOT / ".venv" / "bin" / "python"
MINIMUM = (1, 95)
CACHE = ROOT / "build" / "toolchain.json"
ADVICE = (
    f"hint: install Rust {MINIMUM[0]}.{MINIMUM[1]} or newer (rustup, or your distribution's "
    "package) so that `cargo` is on PATH, then run the same command again"
)


class ToolchainError(Exception):
    """No usable cargo; the text says what to install."""


def parse_version(text: str) -> tuple[int, int] | None:
    """`cargo 1.95.0 (...)` -> (1, 95); None when it is not cargo speaking."""
    found = re.match(r"cargo (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def cargo_version(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The version of the cargo on that environment's PATH; None when there is none that runs."""
    cargo = shutil.which("cargo", path=environment.get("PATH"))
    if cargo is None:
        return None
    answer = subprocess.run(
        [cargo, "--version"], env=dict(environment), capture_output=True, text=True, check=False
    )
    return parse_version(answer.stdout) if answer.returncode == 0 else None


def environment() -> dict[str, str]:
    """The environment to build in: PATH leads to a good cargo. Raises ToolchainError."""
    own = dict(os.environ)
    own["VIRTUAL_ENV"] = str(ROOT / ".venv")
    home = Path(own.get("CARGO_HOME") or Path.home() / ".cargo") / "bin"
    own["PATH"] = os.pathsep.join([str(VENV_PYTHON.parent), own.get("PATH", ""), str(home)])
    version = cargo_version(own)
    if version is not None and version >= MINIMUM:
        return own
    installed = {**own, **_read_cache()}
    if (cargo_version(installed) or (0, 0)) >= MINIMUM:
        return installed
    return {**own, **_install(version)}


def _read_cache() -> dict[str, str]:
    try:
        return {str(k): str(v) for k, v in json.loads(CACHE.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _install(found: tuple[int, int] | None) -> dict[str, str]:
    """Installs a toolchain through puccinialin and returns the variables that select it."""
    state = "is not installed" if found is None else f"is {found[0]}.{found[1]}, too old"
    print(f"==> cargo {state}; installing a Rust toolchain for this user", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        info = Path(scratch) / "info.json"
        command = [str(VENV_PYTHON), "-m", "puccinialin", "--info-json", str(info)]
        done = subprocess.run(command, check=False)
        if done.returncode != 0 or not info.exists():
            raise ToolchainError(f"cargo {state}, and a toolchain could not be fetched\n{ADVICE}")
        variables = {str(k): str(v) for k, v in json.loads(info.read_text())["env"].items()}
    if (cargo_version({**os.environ, **variables}) or (0, 0)) < MINIMUM:
        raise ToolchainError(f"cargo {state}, and so is the one that was fetched\n{ADVICE}")
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(variables, indent=1))
    return variables


def main() -> NoReturn:
    try:
        build = environment()
    except ToolchainError as error:
        sys.exit(f"error: {error}")
    cargo = shutil.which("cargo", path=build["PATH"]) or "cargo"
    os.chdir(ROOT)
    os.execve(cargo, [cargo, *sys.argv[1:]], build)


if __name__ == "__main__":
    main()
