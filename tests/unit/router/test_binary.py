"""Envoy's binary is found without importing anything named `envoy`."""

import subprocess
import sys
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.router.binary import find_envoy


def test_the_packaged_binary_runs_and_is_the_pinned_release() -> None:
    said = subprocess.run(
        [find_envoy(None), "--version"], capture_output=True, text=True, check=True
    )
    assert "/1.40.0/" in said.stdout


def test_no_package_named_envoy_is_imported() -> None:
    code = (
        "import sys, atenet.router.ingress, atenet.router.binary as b; b.find_envoy(None); "
        "print([name for name in sys.modules if name.split('.')[0] == 'envoy'])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_given_file_that_does_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(AteError, match="--envoy-binary"):
        find_envoy(tmp_path / "envoy")


def test_a_given_binary_is_taken(tmp_path: Path) -> None:
    binary = tmp_path / "envoy"
    binary.touch(mode=0o755)
    assert find_envoy(binary) == binary
