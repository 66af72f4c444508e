"""Which cargo builds the engine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.tools.conftest import TOOLS


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)\n", (1, 95)),
        ("cargo 1.100.1-nightly", (1, 100)),
        ("rustc 1.95.0", None),
        ("", None),
    ],
)
def test_a_version_is_read_from_what_cargo_says(
    toolchain: ModuleType, text: str, version: tuple[int, int] | None
) -> None:
    assert toolchain.parse_version(text) == version


def _fake_cargo(directory: Path, version: str) -> None:
    cargo = directory / "cargo"
    cargo.write_text(f"#!/bin/sh\necho 'cargo {version}'\n")
    cargo.chmod(0o755)


def test_a_good_cargo_on_the_path_is_taken_as_it_is(
    toolchain: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_cargo(tmp_path, "1.95.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(toolchain, "_install", lambda _: pytest.fail("nothing to install"))
    assert shutil.which("cargo", path=toolchain.environment()["PATH"]) == str(tmp_path / "cargo")


@pytest.mark.parametrize("version", [None, "1.75.0"])
def test_a_missing_or_old_one_ends_in_what_to_install(tmp_path: Path, version: str | None) -> None:
    """As on a machine where nothing can be fetched: a tree of its own, so that no cache helps."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for script in ("toolchain.py", "bootstrap.py"):
        shutil.copy(TOOLS / script, tools / script)
    venv = tmp_path / ".venv" / "bin"
    venv.mkdir(parents=True)
    failing = venv / "python"
    failing.write_text("#!/bin/sh\necho 'no network' >&2; exit 1\n")
    failing.chmod(0o755)
    if version is not None:
        _fake_cargo(venv, version)
    done = subprocess.run(
        [sys.executable, tools / "toolchain.py", "--version"],
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    state = "is not installed" if version is None else "is 1.75, too old"
    assert f"==> cargo {state}; installing" in done.stdout
    assert f"error: cargo {state}" in done.stderr
    assert "hint: install Rust 1.95 or newer" in done.stderr


def test_a_toolchain_installed_once_is_found_again(
    toolchain: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").mkdir()
    _fake_cargo(tmp_path / "new", "1.96.0")
    cache = tmp_path / "toolchain.json"
    cache.write_text(f'{{"PATH": "{tmp_path}/new:/usr/bin:/bin"}}')
    monkeypatch.setattr(toolchain, "CACHE", cache)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(toolchain, "_install", lambda _: pytest.fail("it is installed"))
    assert toolchain.environment()["PATH"].startswith(f"{tmp_path}/new")
